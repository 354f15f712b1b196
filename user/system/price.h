/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The price of a traced call on this machine, and what a traced process pays. */
#pragma once

#include "user/session/session_options.h"
#include "user/source/probe_runs.h"

struct session;

/* One call of an allocator function, in nanoseconds. All zero: not measured. */
struct price_of_call {
	u64 trap_ns;	  /* the ways into the kernel and back, as malloc and free have them on average */
	u64 program_ns;	  /* the programs there, with a short stack; 0 = not known */
	u64 one_trap_ns;  /* one way into the kernel and back; 0 = not known */
	double steady_ns; /* one run of the program that does the same work in each target; 0 = not known */
};

/*
 * The time that @runs and their traps took. Where the program that does the same work in each target takes longer than
 * in the child, because it waits for memory or for other threads, traps do so, too, for a half of their time.
 */
u64 price_of_runs(const struct price_of_call *of, const struct probe_runs *runs);

/*
 * Measure it in a child that only allocates and frees, before and while it is traced as @so says. Takes some 300 ms. 0;
 * or -errno: it could not be traced.
 */
int price_measure(struct price_of_call *out, const struct session_options *so) __must_check;

/* The steps that make tracing a process cheaper, each for those that the one before was not enough for. */
enum price_saving {
	SAVING_NOTHING,
	SAVING_FRAMES,	/* short stacks */
	SAVING_WINDOWS, /* it is traced for a while, then left for a while */
};

/* The calls of one process. All zero: it is new. */
struct price {
	u64 calls, time_ns; /* at the last look */
	double calls_per_s; /* of the last seconds */
	u64 program_ns;	    /* for a call of this process, measured; 0 = not yet */
	u64 trap_ns;	    /* likewise, of its traps */
	bool is_measuring;
	u64 measured_calls; /* when that began */
	u32 nr_looks;
	u32 permyriad; /* of one CPU, that tracing costs the process */
};

/* Look at the calls of @s once a second. In one second of ten the programs of its probes are measured. */
void price_look(struct price *p, struct session *s, const struct price_of_call *of, u64 now_ns);

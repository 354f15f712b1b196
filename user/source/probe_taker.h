/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The part of the BPF source that another source may take over: the probes of functions. */
#pragma once

#include "user/source/placing.h"

struct source;

/* A point that is for few programs, and for none where only code of ours sees calls: it may be left out. */
static inline bool probe_point_is_spare(u32 kind)
{
	return kind >= POINT_EXIT && kind <= POINT_ACTION;
}

/*
 * Of put_in. No function of this process is the taker's: BPF sees all of its calls. And, only during
 * source_bpf_count(): that counts them.
 */
enum { PROBE_TAKER_DECLINES = 1, PROBE_TAKER_COUNTS = 2 };

/*
 * Another way than BPF to see the calls of functions, for a source that leaves all else to the BPF source. Functions as
 * in struct placing_ops (user/source/placing.h).
 */
struct probe_taker {
	void *ctx; /* borrowed */
	int (*new_file)(void *ctx, const struct module *m, struct elf *elf);
	int (*put_in)(void *ctx, const struct target *t, const struct mapping *map,
		      const struct probed_file *f, struct elf *elf);
	void (*forget_range)(void *ctx, pid_t pid, taddr_t start, taddr_t end);
	bool (*is_intact)(void *ctx, pid_t pid, taddr_t start, taddr_t end);
	/* Note places of @pid that have the code of the file again where the taker's is gone. */
	void (*watch)(void *ctx, pid_t pid, struct watched_code *out);
	/* Does @addr of @pid lie in a page that the taker takes back as the file has it, with what else is in it? */
	bool (*is_in_copy)(void *ctx, pid_t pid, taddr_t addr);
};

/* How often a process calls functions that would have probes. */
struct call_rate {
	u64 calls, time_ns;	 /* so many in this time */
	u64 own_ns, own_time_ns; /* its CPU time in a time in which nobody counted */
};

/*
 * Before anything is put into @t: count its calls of functions for some 50 ms. Blocks so long. Each call takes it one
 * trap meanwhile, of at most some 600. 0; or -errno: it is not known, and nothing is left in @t.
 */
int source_bpf_count(const struct source *bpf, struct target *t, struct call_rate *out) __must_check;

/* Has the trace breakpoints of all processes in the functions of @m? Who maps it must be declined. */
bool source_bpf_has_shared(const struct source *bpf, const struct module *m);

/* Take all probes of @pid out: the next update puts them in again, as its taker then says. */
void source_bpf_place_again(const struct source *bpf, pid_t pid);

/*
 * Is thread @tid of @t, which is stopped at @pc with the stack pointer @sp, in a call of a function with a probe? It
 * also is if that is not known.
 */
bool source_bpf_is_in_call(const struct source *bpf, const struct target *t, pid_t tid, taddr_t pc,
			   taddr_t sp);

/*
 * From now on until @is_on is false, a thread of @pid, which heaptap traces by ptrace, gets a SIGCHLD of the kernel
 * where it leaves its outermost call. Heaptap discards it.
 */
void source_bpf_leave_calls(const struct source *bpf, pid_t pid, bool is_on);

/*
 * As source_bpf_place_again(), for a process that the taker has declined so far. It is stopped, and no
 * thread of it is in a call. Breakpoints in all processes stay. 0; or -EOPNOTSUPP: it is not known.
 */
int source_bpf_hand_over(const struct source *bpf, pid_t pid);

/* The code of @pid, as its taker has listed it, is not looked at any more when threads end. */
void source_bpf_unwatch_code(const struct source *bpf, pid_t pid);

/*
 * Process @pid numbers its calls at @addr of its memory, 0 = no longer. A record EVENT_FORK of it has the lower half of
 * the number in exit_status, 0 = not known.
 */
void source_bpf_number(const struct source *bpf, pid_t pid, taddr_t addr);

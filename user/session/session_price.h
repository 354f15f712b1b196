/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The price of breakpoints for a process: its calls, at what a call costs. That is measured now and then while the
 * process works: how often the kernel's programs run for each call, and how long. The way to each of them and back has
 * been measured once on this machine (struct trial_result).
 */
#pragma once

#include "user/lib/types.h"

struct source;
struct source_ops;

/* A process at one moment: its calls and its CPU time. */
struct process_moment {
	u64 calls, cpu_ns, time_ns, births; /* time 0: there was none */
};

/* The price of a call in the processes of a session. All 0: not known yet. */
struct call_price {
	u64 traps_ns, programs_ns; /* of one call, on average */
	bool is_measuring;
	u64 begin_ns, calls; /* of the session, when that began or ended; 0 = nobody has looked */
};

/*
 * Measure it for 0.3 s of each 5 s, as far as @source can. @nr_calls: of all processes until now. Not before there are
 * calls: to have the kernel measure programs, and to end it, takes 30 ms on some machines, because it changes its code.
 */
void call_price_look(struct call_price *p, const struct source_ops *ops, struct source *source, u64 nr_calls,
		     u64 now_ns);

/* A call, in nanoseconds; a guess while @p is not known. */
u64 call_price_ns(const struct call_price *p);

/* The kernel counts by ticks: what is said of a time is right within so much. */
#define SESSION_PRICE_TICKS_NS 20000000ULL

/* The nanoseconds of its CPU time that breakpoints have cost a process from @then to @now. */
u64 session_price(const struct process_moment *then, const struct process_moment *now,
		  const struct call_price *p) __must_check;

/* Read the CPU time of @pid now, without its calls. False: it has ended. */
bool session_price_look(struct process_moment *out, int pid);

/* How long @pid lives; 0 = it is not known. */
u64 session_price_age_ns(int pid);

enum { SESSION_PRICE_TEXT = 80 };

/*
 * "about 9.0 %": what so many calls by code would take of a process that has @own_ns for itself, of @cpu_ns with
 * breakpoints. "some 100 ns each" where less is left than prices are right within, a fifth: then nobody knows its own
 * time. Returns @buf.
 */
const char *session_price_by_code(char buf[SESSION_PRICE_TEXT], u64 calls, u64 own_ns, u64 cpu_ns);

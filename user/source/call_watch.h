/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Calls of any function of a file, of one process: a uprobe of the kernel whose samples have registers and the top of
 * the stack. Independent of the source that traces the process. Needs the rights that BPF needs.
 */
#pragma once

#include "user/lib/types.h"

struct call_watch;

enum { CALL_WATCH_ARGS = 6 };

struct watched_call {
	u64 time_ns; /* CLOCK_MONOTONIC */
	u32 pid, tid;
	u64 args[CALL_WATCH_ARGS]; /* words where the first integer arguments are passed */
	u32 nr_args;
	taddr_t caller;	     /* return address; 0 = not known */
	bool is_stopped;     /* the kernel has stopped the thread in it */
	bool may_be_stopped; /* or perhaps, because the kernel learned to stop at this moment */
};

/*
 * Watch the code at @offset of the file @path in all threads of @pid, and in those to come. @stops: a thread that comes
 * there gets SIGSTOP, before its first instruction there if the kernel lets us. *@out is owned by the caller:
 * call_watch_free(). 0; -EPERM or -EACCES without the rights; -ENODEV without such uprobes; -ESRCH; or another -errno.
 */
int call_watch_new(struct call_watch **out, pid_t pid, const char *path, u64 offset, bool stops) __must_check;
void call_watch_free(struct call_watch *w); /* NULL is fine */

/* The next call, not in order of time between CPUs. False: there is none now. */
bool call_watch_next(struct call_watch *w, struct watched_call *out);

/* Was there no room at a moment? Then a thread may have been stopped in a call that nobody tells of. */
bool call_watch_was_full(const struct call_watch *w);

/* Calls that the kernel had no room for, since the last time. */
u64 call_watch_lost(struct call_watch *w);

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A source that traces its targets by ptrace, for others that need ptrace, too. */
#pragma once

#include "user/lib/types.h"

struct arch_regs;
struct source;
struct thread_request;

/*
 * For a source that traces its targets by ptrace: nobody else can do so then, and these functions do for others what
 * they need ptrace for. Functions wait for an answer. None of them changes the target in another way than it says.
 */
struct source_tracer {
	/* The process that traces. */
	pid_t (*pid)(const struct source *s);

	/* Trace @pid, a child of the caller that waits before its exec. 0 or -errno. */
	int (*launch)(struct source *s, pid_t pid);

	/* Has @pid executed the program, and stopped at its first instruction? 1, 0, or -errno: it never will. */
	int (*is_launched)(struct source *s, pid_t pid);
	void (*start)(struct source *s, pid_t pid);

	/* Stop all threads within @max_ns: 0, -ETIME or -ESRCH. And resume them. */
	int (*hold)(struct source *s, pid_t pid, u64 max_ns);
	void (*release)(struct source *s, pid_t pid);

	/* While they are stopped: let one of them carry out a call, as snapshot_holder.call. NULL: it cannot. */
	int (*call)(struct source *s, pid_t pid, struct thread_request *request);

	/* Registers of a stopped thread. */
	int (*read_regs)(struct source *s, pid_t tid, struct arch_regs *regs);
	/* With stops_at_checks: the leak check was made, and threads that wait for it are resumed. */
	void (*checked)(struct source *s);
	/*
	 * A launched process, or a child of one, that is about to end and is stopped (wants_end: any one), 0 = none.
	 * *@status as wait(2) gives it, or TRACER_LEAVES. And: let it end.
	 */
	pid_t (*exiting)(struct source *s, int *status);
	void (*let_end)(struct source *s, pid_t pid);
};

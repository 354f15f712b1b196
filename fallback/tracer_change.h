/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Changes of traced processes that another one makes: the source inline, above those by ptrace and by BPF. */
#pragma once

#include "user/lib/types.h"

struct tracer;

/*
 * Somebody else who changes processes while the tracer holds them. The functions run in the tracer, and touch threads
 * by ptrace as if they were it; each thread is left in a stop.
 */
struct tracer_changer {
	void *ctx;
	/* Make the change of @pid that was agreed upon; @fd, perhaps -1, belongs to it. 0 or -errno. */
	int (*change)(void *ctx, pid_t pid, int fd);
	/* The tracer ends, and nobody agrees upon anything: undo all changes of @pid. 0, or -EAGAIN: not now. */
	int (*leave)(void *ctx, pid_t pid);
	/*
	 * In the process that outlives heaptap: probes are out, because a user waits or heaptap has ended.
	 * Undo all changes. A user waits until @lifeline is closed. @end, which is a copy of the one below, has its end
	 * when heaptap has ended. @is_brief: return when those are undone that can be undone at once. Else it does not
	 * return, and keeps no other descriptor. *@pid, shared with heaptap: the process that runs it.
	 */
	void (*outlive)(void *ctx, int end, int lifeline, bool is_brief);
	int end;
	pid_t *pid;
};

/* The process is held by tracer_hold(): have the changer change it. Its result; -ESRCH, or -EBUSY: it is not held. */
int tracer_change(struct tracer *t, pid_t pid, int fd) __must_check;
/* Have the changer undo all that it has changed. Takes 3 s at most. */
void tracer_leave_changed(struct tracer *t);
/* Process @pid numbers its calls at @addr; 0 = no longer. Notes of it, and births, then have the lower half. */
void tracer_number(struct tracer *t, pid_t pid, taddr_t addr);

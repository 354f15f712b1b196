/* SPDX-License-Identifier: GPL-2.0-or-later */
/* All threads of a target, stopped by ptrace for some milliseconds; one of them makes system calls for us. */
#pragma once

#include <sys/types.h>

#include "arch/remote.h"
#include "user/lib/types.h"

struct stopped_thread {
	pid_t tid;
	bool is_stopped;
	bool is_held; /* it was stopped before, and stays so */
	int sig;      /* to be delivered when it is resumed */
};

struct stopped {
	pid_t pid;
	bool is_traced;			/* by the calling thread, before and after this */
	struct stopped_thread *threads; /* owned */
	size_t nr, max;
	struct stopped_thread *worker; /* makes the system calls; NULL = none so far */
	struct remote_regs saved;      /* of the worker */
	taddr_t syscall;	       /* address of an instruction for that */
};

/*
 * Stop all threads of @pid before @end_ns. 0, or -errno: -ETIME, -ESRCH, -EPERM (another process traces it), -ENOMEM;
 * they run on then.
 */
int threads_stop(struct stopped *s, pid_t pid, u64 end_ns) __must_check;
void threads_resume(struct stopped *s);

/* Have a thread make a system call. 0, or -errno of the attempt; the result of the call is in *@result. */
int threads_call(struct stopped *s, long nr, const u64 args[REMOTE_MAX_ARGS], s64 *result) __must_check;

/* The stack pointer of the worker: memory far enough below it may be written. 0 or -errno. */
int threads_scratch(struct stopped *s, taddr_t *sp) __must_check;

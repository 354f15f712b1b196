/* SPDX-License-Identifier: GPL-2.0-or-later */
/* All threads of a target, stopped by ptrace for some milliseconds; one of them makes system calls for us. */
#pragma once

#include "arch/stop_all.h"
#include "arch/thread_call.h"
#include "user/lib/types.h"

struct stopped {
	struct stopped_threads all;
	struct stopped_thread *worker; /* makes the system calls; NULL = none so far */
	struct thread_call call;       /* of the worker */
	taddr_t insn;		       /* that makes system calls; 0 = not looked for yet */
	struct inject_way_back back;   /* by it the worker goes on should we die */
};

/*
 * Stop all threads of @pid before @end_ns. 0, or -errno: -ETIME, -ESRCH, -EPERM (another process traces it), -ENOMEM;
 * they run on then.
 */
int threads_stop(struct stopped *s, pid_t pid, u64 end_ns) __must_check;
void threads_resume(struct stopped *s);

/*
 * Have a thread make a system call. 0, or -errno of the attempt; the result of the call is in *@result. -EAGAIN: no
 * thread can do it now. -EINPROGRESS: none can before the caller, as the tracer, has handled the stop of one.
 */
int threads_call(struct stopped *s, long nr, const u64 args[INJECT_ARGS], s64 *result) __must_check;

/* The stack pointer of the worker: memory far enough below it may be written. 0 or -errno. */
int threads_scratch(struct stopped *s, taddr_t *sp) __must_check;

/* All registers with which the stopped thread @t goes on. 0 or -errno. */
int threads_all_regs(const struct stopped *s, const struct stopped_thread *t, const struct cpu **cpu,
		     struct cpu_regs *regs) __must_check;

/* Have the stopped thread @t go on with @link in its link register. 0 or -errno. */
int threads_set_link(struct stopped *s, const struct stopped_thread *t, u64 link) __must_check;

/* The program counter and stack pointer with which the stopped thread @t goes on. 0 or -errno. */
int threads_regs(const struct stopped *s, const struct stopped_thread *t, taddr_t *pc,
		 taddr_t *sp) __must_check;

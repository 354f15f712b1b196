/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A system call that a thread of the target carries out for heaptap. The thread is in a stop that the caller asked for
 * by PTRACE_INTERRUPT, and is in that stop again afterwards, with all its registers and its signal mask.
 *
 * All calls come from the tracer of the thread. They block for as long as the system call does. Signals wait until
 * thread_call_end(). A seccomp filter of the thread does not see the call; where the kernel cannot arrange that, there
 * is no call.
 */
#pragma once

#include <sys/types.h>

#include "arch/inject.h"

struct snapshot;

struct thread_call {
	pid_t tid;
	taddr_t insn; /* a system call instruction in the target */
	struct cpu_regs regs;
	u64 mask;      /* of blocked signals */
	bool was_stop; /* SIGSTOP arrived meanwhile */
};

/* Find an instruction that carries out a system call, in the vDSO. 0; -ENOENT; -ENOTSUP on this CPU; or -errno. */
int thread_call_find(taddr_t *insn, const struct snapshot *s) __must_check;

/*
 * Prepare @tid. -EBUSY if its registers may not change now: it runs a restartable sequence (rseq(2)). -ENOTSUP for
 * another CPU; -EPERM for a seccomp filter that cannot be suspended; -ESRCH if it has ended. Nothing has changed then.
 */
int thread_call_begin(struct thread_call *c, pid_t tid, taddr_t insn) __must_check;

/*
 * Carry out system call @number. Its result is in *@result, -errno on errors. *@child is the process that it made, 0
 * for none, which is stopped and traced by the caller. @child may be NULL. 0; -ESRCH if the thread was killed.
 */
int thread_call_make(struct thread_call *c, u64 number, const u64 args[INJECT_ARGS], s64 *result,
		     pid_t *child) __must_check;

/* Bring the thread back into its stop. 0; -ESRCH if it was killed. */
int thread_call_end(struct thread_call *c);

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

#include <signal.h>

#include "arch/inject.h"

struct thread_call {
	pid_t tid;
	taddr_t insn;	      /* a system call instruction in the target */
	struct cpu_regs regs; /* with which the thread goes on */
	u64 mask;	      /* of blocked signals */
	bool was_stop;	      /* SIGSTOP arrived meanwhile */
	bool is_held;
	struct inject_way_back back; /* with a frame */
	taddr_t frame;		     /* where it goes on by itself; 0 = nowhere */
};

/* A request for one call, by whoever traces the process. */
struct thread_request {
	taddr_t insn;		     /* a system call instruction in the target */
	struct inject_way_back back; /* all 0 = none was found */
	u64 number;
	u64 args[INJECT_ARGS];
	s64 result; /* -errno on errors */
	s32 child;  /* the process that it made, which is stopped and dies with its tracer; 0 = none */
	u32 reserved;
};

/* Find an instruction that carries out a system call in code of @tid. 0; -ENOENT; -ENOTSUP on this CPU; or -errno. */
int thread_call_find_in(taddr_t *insn, pid_t tid, taddr_t start, taddr_t end) __must_check;

/* -ENOTTY of the functions that begin a call. */
#define NO_SIGNAL_MASK "PTRACE_GETSIGMASK is not there (Linux 3.11)"

/*
 * Prepare @tid, by thread_call_begin_safe() where that is possible: otherwise it crashes if the tracer dies before
 * thread_call_end(). -EBUSY if its registers may not change now: it runs a restartable sequence (rseq(2)). -ENOTSUP for
 * another CPU; -ENOTTY for an old kernel; -EPERM for a seccomp filter that cannot be suspended; -ESRCH if it has ended.
 * Nothing has changed then.
 */
int thread_call_begin(struct thread_call *c, pid_t tid, taddr_t insn,
		      const struct inject_way_back *back) __must_check;

/* Why a call could not be begun, for a message. */
const char *thread_call_reason(int err);

/*
 * As thread_call_begin(), for a thread that the caller holds in a ptrace stop of any kind, with ptrace options of its
 * own, which stay. A system call that has not begun begins again afterwards. A seccomp filter sees the calls. @insn may
 * be 0 if only thread_call_step() follows.
 */
int thread_call_begin_held(struct thread_call *c, pid_t tid, taddr_t insn) __must_check;

/*
 * As thread_call_begin_held(), but if the tracer dies before thread_call_end(), the thread goes on as if nothing had
 * happened: a frame for that is written to unused memory of its stack, at @stack or above. -ENOTSUP also if it has a
 * shadow stack, or state that does not fit; -EPERM for a seccomp filter.
 */
int thread_call_begin_safe(struct thread_call *c, pid_t tid, const struct inject_way_back *back,
			   taddr_t stack) __must_check;

/*
 * Find the first byte of the stack that @tid runs on: that of the program, or one with the thread pointer in the same
 * mapping. The memory below the stack pointer is unused in those only: others may lie in a heap. -EBUSY: it has no such
 * stack; or another -errno.
 */
int thread_call_find_stack(taddr_t *out, pid_t tid) __must_check;

/* Search code of @tid for what thread_call_begin_safe() needs and @back does not have yet. 0; -ENOENT; or -errno. */
int thread_call_find_way_back(struct inject_way_back *back, pid_t tid, taddr_t start,
			      taddr_t end) __must_check;

/*
 * Carry out system call @number. Its result is in *@result, -errno on errors. *@child is the process that it made, 0
 * for none, which is stopped and traced by the caller. @child may be NULL. 0; -ESRCH if the thread was killed; -ETIME
 * if it does not run (a frozen control group), and no call was made.
 */
int thread_call_make(struct thread_call *c, u64 number, const u64 args[INJECT_ARGS], s64 *result,
		     pid_t *child) __must_check;

/*
 * Between begin and end of @c: carry out @r and fill in its result. A child is killed when the caller ends. 0, or an
 * error of thread_call_make().
 */
int thread_call_do(struct thread_call *c, struct thread_request *r) __must_check;

/*
 * Between begin and end of @c: let the thread run one instruction with @regs. *@si: of the signal that stopped it.
 * 0, -ESRCH, -EBUSY, or -ETIME as above.
 */
int thread_call_step(struct thread_call *c, const struct cpu_regs *regs, siginfo_t *si) __must_check;

/* Bring the thread back into its stop. 0; -ESRCH if it was killed. */
int thread_call_end(struct thread_call *c);

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A system call that a stopped, ptraced thread of another process carries out for heaptap: its registers. */
#pragma once

#include "arch/cpu.h"

enum {
	INJECT_ARGS = 6,
#if defined(__aarch64__)
	/*
	 * At the entry and the exit of a system call the kernel shows 0 or 1 in place of x7, and restores it when the
	 * thread goes on.
	 */
	INJECT_HIDES_REGISTER = true,
	/* When a thread stops in a system call, the kernel has taken it back to the instruction already. */
	INJECT_IS_REWOUND = true,
	/* The code for rt_sigreturn(2) is in the vDSO, and in no file. */
	INJECT_IN_VDSO = true,
#else
	INJECT_HIDES_REGISTER = false,
	INJECT_IS_REWOUND = false,
	INJECT_IN_VDSO = false,
#endif
};

/* The place where the thread stopped. */
enum inject_place {
	INJECT_NOWHERE,	   /* its registers cannot be used: another CPU, or 32-bit code */
	INJECT_IN_CALL,	   /* in a system call, which the kernel restarts afterwards */
	INJECT_IN_PROGRAM, /* between two instructions of the program */
};

enum inject_place inject_place(const struct cpu_regs *regs);

/* The address of the next instruction of the program. */
taddr_t inject_pc(const struct cpu_regs *regs);

/* The thread has stopped before a system call, which has not begun: have it begin the call again. */
void inject_rewind(struct cpu_regs *regs);

/*
 * If INJECT_IS_REWOUND, for a thread at a system call instruction that is not at the entry of the call: a sleep that
 * has begun goes on when the thread does, and does not begin anew.
 */
void inject_restart_sleep(struct cpu_regs *regs);

/* At the entry of a system call: another number, -1 = no call. 0; or -errno; -ENOTSUP where nobody needs it. */
int inject_set_number(pid_t tid, s32 number);

/* Find a system call instruction in @code. 0 and its position in *@at, or -ENOENT; -ENOTSUP on this CPU. */
int inject_find(const u8 *code, size_t len, size_t *at) __must_check;

/*
 * Change @regs so that the thread carries out system call @number at the instruction @insn. What the thread was doing
 * is not restarted. A copy of @regs brings the thread back.
 */
void inject_call(struct cpu_regs *regs, taddr_t insn, u64 number, const u64 args[INJECT_ARGS]);

/* The result of the call, -errno on errors. */
s64 inject_result(const struct cpu_regs *regs);

/*
 * A stack from which a thread goes on with given registers, although nobody sets them: behind a system call it returns
 * to code that makes rt_sigreturn(2), as after a signal handler.
 */
struct inject_way_back {
	taddr_t insn;	  /* a system call instruction, and behind it a return */
	taddr_t restorer; /* code that makes rt_sigreturn(2) */
};

enum { INJECT_MAX_FRAME = 16384 };

/* Find in @code, which begins at @start, what @w does not have yet. True if @w is complete. */
bool inject_find_way_back(struct inject_way_back *w, taddr_t start, const u8 *code, size_t len);

/* Read what a frame needs of @tid's other registers. 0, or -ENOTSUP: they have no room in a frame. */
int inject_read_state(pid_t tid, u8 state[INJECT_MAX_FRAME], size_t *nr) __must_check;

/*
 * Fill @frame, which is to lie at *@sp, with @regs, @state (@nr_state bytes) and the signal mask @mask.
 * @top: the first byte above the frame. Returns its length, or -ENOTSUP.
 */
int inject_frame(u8 frame[INJECT_MAX_FRAME], taddr_t *sp, taddr_t top, const struct inject_way_back *w,
		 const struct cpu_regs *regs, const u8 *state, size_t nr_state, u64 mask) __must_check;

/* The first byte that the program uses of its stack. */
taddr_t inject_sp(const struct cpu_regs *regs);
/* Have the next system call of @regs end in the frame at @sp. And: go there at once. */
void inject_set_sp(struct cpu_regs *regs, const struct inject_way_back *w, taddr_t sp);
void inject_go_back(struct cpu_regs *regs, const struct inject_way_back *w, taddr_t sp);

/* The thread pointer of @tid, which is stopped. 0; -errno; -ENOTSUP: another CPU, or 32-bit code. */
int inject_thread_pointer(u64 *out, pid_t tid) __must_check;

/* Does the kernel compare the returns of a process with a shadow stack? True if that is not known. */
bool inject_has_shadow_stack(pid_t pid);

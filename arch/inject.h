/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A system call that a stopped, ptraced thread of another process carries out for heaptap: its registers. */
#pragma once

#include "arch/cpu.h"

enum { INJECT_ARGS = 6 };

/* The place where the thread stopped. */
enum inject_place {
	INJECT_NOWHERE,	   /* its registers cannot be used: another CPU, or 32-bit code */
	INJECT_IN_CALL,	   /* in a system call, which the kernel restarts afterwards */
	INJECT_IN_PROGRAM, /* between two instructions of the program */
};

enum inject_place inject_place(const struct cpu_regs *regs);

/* The address of the next instruction of the program. */
taddr_t inject_pc(const struct cpu_regs *regs);

/* Find a system call instruction in @code. 0 and its position in *@at, or -ENOENT; -ENOTSUP on this CPU. */
int inject_find(const u8 *code, size_t len, size_t *at) __must_check;

/*
 * Change @regs so that the thread carries out system call @number at the instruction @insn. What the thread was doing
 * is not restarted. A copy of @regs brings the thread back.
 */
void inject_call(struct cpu_regs *regs, taddr_t insn, u64 number, const u64 args[INJECT_ARGS]);

/* The result of the call, -errno on errors. */
s64 inject_result(const struct cpu_regs *regs);

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* aarch64: the registers that a uprobe sees, and the calling conventions as the programs need them. */
#pragma once

#include "vmlinux/aarch64/walk_cpu.h"

/* The kernel's struct user_pt_regs (arch/arm64/include/uapi/asm/ptrace.h), with which its pt_regs begins. */
struct pt_regs {
	u64 regs[31];
	u64 sp, pc, pstate;
};

/*
 * Read with an offset that the compiler cannot turn into pointer arithmetic, which the verifier forbids on
 * a context.
 */
#define REGS_READ(c, field)                                                                                  \
	({                                                                                                   \
		u64 value;                                                                                   \
		asm volatile("%0 = *(u64 *)(%1 + %2)"                                                        \
			     : "=r"(value)                                                                   \
			     : "r"(c), "i"(__builtin_offsetof(struct pt_regs, field)));                      \
		value;                                                                                       \
	})

#define REGS_IP(c)     REGS_READ(c, pc)
#define REGS_SP(c)     REGS_READ(c, sp)
#define REGS_FP(c)     REGS_READ(c, regs[29])
#define REGS_RESULT(c) REGS_READ(c, regs[0])

/* Arguments 1 to 4 of a 64-bit call. */
#define REGS_ARG1(c) REGS_READ(c, regs[0])
#define REGS_ARG2(c) REGS_READ(c, regs[1])
#define REGS_ARG3(c) REGS_READ(c, regs[2])
#define REGS_ARG4(c) REGS_READ(c, regs[3])

/* A call leaves its return address in a register, and the stack pointer as it is. */
#define REGS_LINK(c)	      REGS_READ(c, regs[30])
#define REGS_CALL_SP(c, word) ((void)(word), REGS_SP(c))

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* aarch64: the registers that a uprobe sees, and the calling conventions as the programs need them. */
#pragma once

#include "vmlinux/aarch64/walk_cpu.h"

/* The beginning of the kernel's struct pt_regs (arch/arm64/include/asm/ptrace.h); a uprobe sees all but orig_x0. */
struct pt_regs {
	u64 regs[31];
	u64 sp, pc, pstate;
	u64 orig_x0;
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

/* At a system call, in a copy of the registers. Its result takes the place of argument 1. 32-bit code is not traced. */
#define SYSTEM_CALL_IS_32BIT(c) false
#define SYSTEM_CALL_ARG1(c)	((c)->orig_x0)
#define SYSTEM_CALL_ARG2(c)	((c)->regs[1])
#define SYSTEM_CALL_ARG3(c)	((c)->regs[2])
enum { SYSTEM_CALL_BRK = 214, SYSTEM_CALL_MUNMAP, SYSTEM_CALL_MREMAP, SYSTEM_CALL_MMAP = 222 };
enum { SYSTEM_CALL_NUMBER_AT = __builtin_offsetof(struct pt_regs, regs[8]) };

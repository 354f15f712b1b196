/* SPDX-License-Identifier: GPL-2.0-or-later */
/* x86_64: the registers that a uprobe sees, and the calling conventions as the programs need them. */
#pragma once

#include "vmlinux/x86_64/walk_cpu.h"

/* Layout of the kernel's struct pt_regs (arch/x86/include/asm/ptrace.h); stable since 2.6. */
struct pt_regs {
	u64 r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax;
	u64 ip, cs, flags, sp, ss;
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

#define REGS_IP(c)     REGS_READ(c, ip)
#define REGS_SP(c)     REGS_READ(c, sp)
#define REGS_FP(c)     REGS_READ(c, bp)
#define REGS_RESULT(c) REGS_READ(c, ax)

/* Arguments 1 to 4 of a 64-bit call. */
#define REGS_ARG1(c) REGS_READ(c, di)
#define REGS_ARG2(c) REGS_READ(c, si)
#define REGS_ARG3(c) REGS_READ(c, dx)
#define REGS_ARG4(c) REGS_READ(c, cx)

#define REGS_LINK(c)	   0ULL

/* The stack pointer in a called function, from that at its call instruction or behind it. */
#define REGS_CALL_SP(c, word) (REGS_SP(c) - (word))

/* At a system call, in a copy of the registers. */
#define SYSTEM_CALL_IS_32BIT(c) ((c)->cs == 0x23)
#define SYSTEM_CALL_ARG1(c)	(SYSTEM_CALL_IS_32BIT(c) ? (c)->bx : (c)->di)
#define SYSTEM_CALL_ARG2(c)	(SYSTEM_CALL_IS_32BIT(c) ? (c)->cx : (c)->si)
#define SYSTEM_CALL_ARG3(c)	((c)->dx)
enum { SYSTEM_CALL_MMAP = 9, SYSTEM_CALL_MUNMAP = 11, SYSTEM_CALL_BRK = 12, SYSTEM_CALL_MREMAP = 25 };
enum { SYSTEM_CALL_NUMBER_AT = __builtin_offsetof(struct pt_regs, orig_ax) };

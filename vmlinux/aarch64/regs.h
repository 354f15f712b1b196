/* SPDX-License-Identifier: GPL-2.0-or-later */
/* aarch64: the registers that a uprobe sees, and the calling conventions as the programs need them. */
#pragma once

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
#define HAS_LINK	      1
#define REGS_LINK(c)	      REGS_READ(c, regs[30])
#define REGS_CALL_SP(c, word) ((void)(word), REGS_SP(c))

/* A return address without its signature (pointer authentication): addresses of programs have 48 bits. */
#define CODE_ADDRESS(addr) ((addr)&0xffffffffffffULL)

/* In the registers that a signal frame saved: from sp to the others (struct sigcontext). */
#define SIGNAL_PC_OFFSET(word) 8
#define SIGNAL_FP_OFFSET(word) (-16)
#define SIGNAL_LR_OFFSET(word) (-8)

/* At the code that handlers return to: from sp to the saved sp, and that code's first bytes (arch/unwind.c). */
#define SIGNAL_SP_OFFSET(word) 560
#define SIGNAL_CODE(word)      0xd4000001d2801168ULL
#define SIGNAL_CODE_MASK(word) (~0ULL)

/* The code that the first function of a coroutine returns to, where no call frame information marks it: nowhere. */
#define COROUTINE_CODE(word) 0ULL

/* Are the 8 bytes before an address, as a number, the end of a call? (arch/unwind.c) */
#define IS_CALL(code)                                                                                        \
	(((code) >> 32 & 0xfc000000) == 0x94000000 || ((code) >> 32 & 0xfffffc1f) == 0xd63f0000 ||           \
	 ((code) >> 32 & 0xfefff800) == 0xd63f0800)

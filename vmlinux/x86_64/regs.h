/* SPDX-License-Identifier: GPL-2.0-or-later */
/* x86_64: the registers that a uprobe sees, and the calling conventions as the programs need them. */
#pragma once

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

/* A call leaves its return address on the stack. */
#define HAS_LINK	   0
#define REGS_LINK(c)	   0ULL
#define CODE_ADDRESS(addr) (addr)

/* The stack pointer in a called function, from that at its call instruction or behind it. */
#define REGS_CALL_SP(c, word) (REGS_SP(c) - (word))

/* In the registers that a signal frame saved: from sp to the others, by the word size (struct sigcontext). */
#define SIGNAL_PC_OFFSET(word) ((word) == 4 ? 28 : 8)
#define SIGNAL_FP_OFFSET(word) ((word) == 4 ? -4 : -40)
#define SIGNAL_LR_OFFSET(word) 0

/* At the code that handlers return to: from sp to the saved sp, and that code's first bytes (arch/unwind.c). */
#define SIGNAL_SP_OFFSET(word) ((word) == 4 ? 188 : 160)
#define SIGNAL_CODE(word)      ((word) == 4 ? 0x80cd000000adb8ULL : 0x0f0000000fc0c748ULL)
#define SIGNAL_CODE_MASK(word) ((word) == 4 ? ~0ULL >> 8 : ~0ULL)

/* The code that the first function of a coroutine returns to, where no call frame information marks it (arch/unwind.c). */
#define COROUTINE_CODE(word) ((word) == 4 ? 0x7400243c839c248dULL : 0)

/* Are the 8 bytes before an address, as a number, the end of a call? (arch/unwind.c) */
#define IS_CALL_AT(code, byte) (((code) >> 8 * (byte)&0x38ff) == 0x10ff)
#define IS_CALL(code)                                                                                        \
	(((code) >> 24 & 0xff) == 0xe8 || IS_CALL_AT(code, 1) || IS_CALL_AT(code, 2) ||                      \
	 IS_CALL_AT(code, 4) || IS_CALL_AT(code, 5) || IS_CALL_AT(code, 6))

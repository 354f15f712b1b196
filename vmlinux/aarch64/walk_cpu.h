/* SPDX-License-Identifier: GPL-2.0-or-later */
/* aarch64: what a walk of the stack knows of the CPU. */
#pragma once

/* A call leaves its return address in a register. */
#define HAS_LINK 1
#define TRAP_SKIP 0 /* from a breakpoint to the pc of a thread that has hit it */

/* A return address without its signature (pointer authentication): addresses of programs have 48 bits. */
#define CODE_ADDRESS(addr) ((addr)&0xffffffffffffULL)

/* In the registers that a signal frame saved, x0 to x30, sp, pc: from sp to the others (struct sigcontext). */
#define SIGNAL_PC_OFFSET(word) 8
#define SIGNAL_FP_OFFSET(word) (-16)
#define SIGNAL_LR_OFFSET(word) (-8)

/*
 * At the code that handlers return to: from sp to the saved sp, behind siginfo (128), the head of the ucontext (176), an
 * address (8), 31 registers; and that code's first bytes: mov x8, #139; svc #0.
 */
#define SIGNAL_SP_OFFSET(word) (0 * (word) + 560)
#define SIGNAL_CODE(word)      (0 * (word) + 0xd4000001d2801168ULL)
#define SIGNAL_CODE_MASK(word) (0 * (word) + ~0ULL)

/* The code that the first function of a coroutine returns to, where no call frame information marks it: nowhere. */
#define COROUTINE_CODE(word) 0ULL

/* Are the 8 bytes before an address, as a number, the end of a call: bl, blr, blr of a signed address? */
#define IS_CALL(code)                                                                                        \
	(((code) >> 32 & 0xfc000000) == 0x94000000 || ((code) >> 32 & 0xfffffc1f) == 0xd63f0000 ||           \
	 ((code) >> 32 & 0xfefff800) == 0xd63f0800)

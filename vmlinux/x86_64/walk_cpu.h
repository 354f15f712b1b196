/* SPDX-License-Identifier: GPL-2.0-or-later */
/* x86_64, and i386 by the size of a word: what a walk of the stack knows of the CPU. */
#pragma once

/* A call leaves its return address on the stack. */
#define HAS_LINK	   0
#define TRAP_SKIP	   1 /* from a breakpoint to the pc of a thread that has hit it */
#define CODE_ADDRESS(addr) (addr)

/*
 * In the registers that a signal frame saved: from sp to the others (struct sigcontext). x86_64 ends with rbp rbx rdx rax
 * rcx rsp rip, i386 has ebp esp ebx edx ecx eax trapno err eip.
 */
#define SIGNAL_PC_OFFSET(word) ((word) == 4 ? 28 : 8)
#define SIGNAL_FP_OFFSET(word) ((word) == 4 ? -4 : -40)
#define SIGNAL_LR_OFFSET(word) 0

/*
 * At the code that handlers return to: from sp to the saved sp, and that code's first bytes: mov $15,%rax; syscall,
 * and mov $173,%eax; int $0x80.
 */
#define SIGNAL_SP_OFFSET(word) ((word) == 4 ? 188 : 160)
#define SIGNAL_CODE(word)      ((word) == 4 ? 0x80cd000000adb8ULL : 0x0f0000000fc0c748ULL)
#define SIGNAL_CODE_MASK(word) ((word) == 4 ? ~0ULL >> 8 : ~0ULL)

/*
 * The code that the first function of a coroutine returns to, where no call frame information marks it: in glibc
 * lea (%esp,%ebx,4),%esp; cmpl $0,(%esp); je.
 */
#define COROUTINE_CODE(word) ((word) == 4 ? 0x7400243c839c248dULL : 0)

/*
 * Are the 8 bytes before an address, as a number, the end of a call? A direct one (e8 and a distance), or an indirect one:
 * ff, operation 2 in the next byte, and up to 5 bytes more.
 */
#define IS_CALL_AT(code, byte) (((code) >> 8 * (byte)&0x38ff) == 0x10ff)
#define IS_CALL(code)                                                                                        \
	(((code) >> 24 & 0xff) == 0xe8 || IS_CALL_AT(code, 1) || IS_CALL_AT(code, 2) ||                      \
	 IS_CALL_AT(code, 4) || IS_CALL_AT(code, 5) || IS_CALL_AT(code, 6))

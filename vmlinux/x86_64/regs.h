/* SPDX-License-Identifier: GPL-2.0-or-later */
/* x86_64: the registers that a uprobe sees, and the calling conventions as the programs need them. */
#pragma once

/* Layout of the kernel's struct pt_regs (arch/x86/include/asm/ptrace.h); stable since 2.6. */
struct pt_regs {
	u64 r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax;
	u64 ip, cs, flags, sp, ss;
};

#define REGS_IP(c)     ((c)->ip)
#define REGS_SP(c)     ((c)->sp)
#define REGS_FP(c)     ((c)->bp)
#define REGS_RESULT(c) ((c)->ax)

/* Arguments 1 to 4 of a 64-bit call. */
#define REGS_ARG1(c) ((c)->di)
#define REGS_ARG2(c) ((c)->si)
#define REGS_ARG3(c) ((c)->dx)
#define REGS_ARG4(c) ((c)->cx)

/* After its return instruction a 64-bit call has popped its return address. */
#define REGS_CALL_SP(c, word) ((c)->sp - (word))

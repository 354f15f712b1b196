/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The base of all BPF programs: fixed-width types, functions of the kernel, differences between kernels. */
#pragma once

#include <linux/bpf.h>

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s32 s32;
typedef __s64 s64;
typedef _Bool bool;
#define true 1
#define false 0

#include <bpf/bpf_helpers.h>
#include <regs.h>

/* On all CPUs but mips and alpha. */
enum { SIGNAL_ILL = 4, SIGNAL_TRAP = 5, SIGNAL_CHILD = 17, SIGNAL_CONTINUE = 18, SIGNAL_STOP = 19 };

/*
 * From Linux 6.13 on a program with 64 bytes of stack or more has one "private" stack per CPU. A program on a uprobe
 * can be preempted by another thread that runs the same program on the same CPU. Both would use one stack, and the
 * kernel would crash. A program with a tail call gets no private stack. This tail call is never reached, and the
 * verifier removes it.
 */
static __always_inline void keep_own_stack(void)
{
	asm volatile("r0 = 0\n"
		     "if r0 == 0 goto +1\n"
		     "call %0" /* bpf_tail_call */
		     :
		     : "i"(BPF_FUNC_tail_call)
		     : "r0");
}

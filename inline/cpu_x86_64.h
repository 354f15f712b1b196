/* SPDX-License-Identifier: GPL-2.0-or-later */
/* x86_64, for the piece. */
#pragma once

#include "user/lib/types.h"

/* Registers as entry_x86_64.S saves them. */
struct piece_regs {
	u64 rbp, r11, r10, r9, r8;
	u64 args[4]; /* rdi, rsi, rdx, rcx */
	u64 rax;
	u64 stub;  /* where the stub goes on; of a call that returns: room for its return address */
	u64 index; /* of the probe */
	u64 ret;   /* return address of the call */
};

/* Stubs count the bytes of calls for samples, and come to the piece only when one is due (inline/sample.h). */
enum { STUBS_COUNT = 1 };

/* The stack pointer of the call at its entry: there is its return address. */
static inline u64 regs_entry_sp(const struct piece_regs *r)
{
	return (u64)(uintptr_t)&r->ret;
}

/* The stack pointer at the entry of a call that has returned to the piece. */
static inline u64 regs_returned_sp(const struct piece_regs *r)
{
	return (u64)(uintptr_t)&r->stub;
}

/* Argument @n, from 1. */
static inline u64 regs_arg(const struct piece_regs *r, u8 n)
{
	return r->args[(n - 1) % 4];
}

static inline u64 regs_result(const struct piece_regs *r)
{
	return r->rax;
}

static inline u64 regs_fp(const struct piece_regs *r)
{
	return r->rbp;
}

static inline u64 thread_pointer(void)
{
	u64 value;

	asm("rdfsbase %0" : "=r"(value));
	return value;
}

static inline u64 cpu_counter(void)
{
	return __builtin_ia32_rdtsc();
}

/* The counter is not read before the loads above are done. */
static inline void order_counter(void)
{
	asm volatile("lfence" : : : "memory");
}

/* Returns what was there. In one instruction, but not for other CPUs. */
static inline u64 add_to_word(u64 *word, u64 value)
{
	asm volatile("xadd %0, %1" : "+r"(value), "+m"(*word) : : "memory", "cc");
	return value;
}

static inline void subtract_from_word(u64 *word, u64 value)
{
	asm volatile("sub %1, %0" : "+m"(*word) : "r"(value) : "memory", "cc");
}

static inline void cpu_relax(void)
{
	__builtin_ia32_pause();
}

static inline void fetch_to_write(const void *at)
{
	asm volatile("prefetchw %0" : : "m"(*(const char *)at));
}

static inline void fill_bytes(void *to, int value, size_t len)
{
	asm volatile("rep stosb" : "+D"(to), "+c"(len) : "a"(value) : "memory");
}

static inline void copy_bytes(void *to, const void *from, size_t len)
{
	asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(len) : : "memory");
}

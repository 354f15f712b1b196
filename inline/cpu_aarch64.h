/* SPDX-License-Identifier: GPL-2.0-or-later */
/* aarch64, for the piece. */
#pragma once

#include "user/lib/types.h"

/* Registers as entry_aarch64.S saves them, at the stack pointer that it has then. */
struct piece_regs {
	u64 x[16];
	u64 fp;
	u64 ret;   /* return address of the call: x30 */
	u64 index; /* of the probe */
	u64 stub;  /* where the stub goes on */
};

enum { STUBS_COUNT = 0 };

/* The stack pointer of the call, which is the same at its entry and when it has returned. */
static inline u64 regs_entry_sp(const struct piece_regs *r)
{
	return (u64)(uintptr_t)(r + 1);
}

static inline u64 regs_returned_sp(const struct piece_regs *r)
{
	return regs_entry_sp(r);
}

/* Argument @n, from 1. */
static inline u64 regs_arg(const struct piece_regs *r, u8 n)
{
	return r->x[(n - 1) % 4];
}

static inline u64 regs_result(const struct piece_regs *r)
{
	return r->x[0];
}

static inline u64 regs_fp(const struct piece_regs *r)
{
	return r->fp;
}

static inline u64 thread_pointer(void)
{
	return (u64)(uintptr_t)__builtin_thread_pointer();
}

static inline u64 cpu_counter(void)
{
	u64 value;

	asm volatile("mrs %0, cntvct_el0" : "=r"(value));
	return value;
}

/* The counter is not read before the loads above are done. */
static inline void order_counter(void)
{
	asm volatile("dsb ld\n\tisb" : : : "memory");
}

/* Returns what was there. */
static inline u64 add_to_word(u64 *word, u64 value)
{
	return __atomic_fetch_add(word, value, __ATOMIC_ACQ_REL);
}

static inline void subtract_from_word(u64 *word, u64 value)
{
	__atomic_fetch_sub(word, value, __ATOMIC_RELEASE);
}

static inline void cpu_relax(void)
{
	asm volatile("yield" : : : "memory");
}

static inline void fetch_to_write(const void *at)
{
	asm volatile("prfm pstl1keep, [%0]" : : "r"(at));
}

/* The compiler must not make calls of memset() and memcpy() of these loops: they are those. */
static inline void fill_bytes(void *to, int value, size_t len)
{
	for (u8 *at = to, *end = at + len; at < end; at++) {
		*at = (u8)value;
		asm volatile("" : : : "memory");
	}
}

static inline void copy_bytes(void *to, const void *from, size_t len)
{
	const u8 *source = from;

	for (u8 *at = to, *end = at + len; at < end; at++, source++) {
		*at = *source;
		asm volatile("" : : : "memory");
	}
}

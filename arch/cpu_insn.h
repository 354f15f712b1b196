/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the emulations of CPUs with plain instructions share: one instruction under way, on a copy of the registers. */
#pragma once

#include "arch/cpu_private.h"

struct cpu_insn {
	struct cpu_regs regs; /* as they will be */
	const struct cpu_memory *memory;
	const struct cpu *cpu;
	taddr_t pc, next; /* next: where control goes; without bit 0 for Thumb */
};

/* Word @index of the kernel's order. */
u64 cpu_regs_word(const struct cpu_regs *regs, u8 word_size, u32 index);
void cpu_regs_set_word(struct cpu_regs *regs, u8 word_size, u32 index, u64 value);

/* The same of an instruction's registers. */
u64 cpu_insn_get(const struct cpu_insn *in, u32 index);
void cpu_insn_set(struct cpu_insn *in, u32 index, u64 value);

/* @size bytes of memory, as a number. 0 or -errno. A store must be the last thing that can fail. */
int cpu_insn_load(const struct cpu_insn *in, taddr_t addr, size_t size, u64 *value) __must_check;
int cpu_insn_load_signed(const struct cpu_insn *in, taddr_t addr, size_t size, u64 *value) __must_check;
int cpu_insn_store(const struct cpu_insn *in, taddr_t addr, size_t size, u64 value) __must_check;

/* @bits of @word from bit @shift on; signed. */
static inline u32 cpu_bits(u32 word, u32 shift, u32 bits)
{
	return word >> shift & (u32)((1ULL << bits) - 1);
}

static inline s64 cpu_signed_bits(u64 word, u32 shift, u32 bits)
{
	return (s64)(word << (64 - shift - bits)) >> (64 - bits);
}

static inline u64 cpu_sign_extend(u64 value, u32 bits)
{
	return (u64)cpu_signed_bits(value, 0, bits);
}

/* A pattern of instructions; a table of them ends with do_it NULL, and its first match counts. */
struct cpu_pattern {
	u32 mask, value;
	/* Carry @word out. 0, -ENOTSUP or -errno of the memory. */
	int (*do_it)(struct cpu_insn *in, u32 word);
};

/* -ENOTSUP if no pattern matches. */
int cpu_insn_do(struct cpu_insn *in, const struct cpu_pattern *patterns, u32 word) __must_check;

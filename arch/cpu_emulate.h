/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Emulation by tables: one instruction is carried out on a copy of the registers. Each CPU gives its rows. */
#pragma once

#include "arch/cpu_private.h"

/* The instruction that is carried out. */
struct cpu_insn {
	struct cpu_regs regs; /* a copy; replaces the thread's registers at the end */
	const struct cpu_memory *memory;
	const struct cpu *cpu;
	const u8 *code; /* the instruction and what follows it, @len bytes */
	size_t len;
	size_t length; /* bytes of the instruction */
	taddr_t pc;    /* of the instruction; bit 0 is clear for Thumb code */
	taddr_t next;  /* where control goes: behind the instruction, unless it branches */
};

/* A row of a table: the function for all instructions with @value in the bits of @mask. */
struct cpu_pattern {
	u64 mask, value;
	/* Carry @insn out. 0, -ENOTSUP, or -errno of the memory. */
	int (*do_it)(struct cpu_insn *in, u64 insn);
};

/* An instruction set. ARM has two, every other CPU one. */
struct cpu_isa {
	/* Bytes of the instruction that begins at @code. 0 if it is not known, or has more than @len bytes. */
	size_t (*length)(const u8 *code, size_t len);
	/* The instruction as the number that patterns are made for. */
	u64 (*number)(const u8 *code, size_t length);
	const struct cpu_pattern
		*patterns; /* the first match counts; a row without a function ends the table */
	/* Replaces the walk over @patterns, for sets that need more. NULL = none. */
	int (*carry_out)(struct cpu_insn *in, u64 insn);
	/* True if control may not continue behind the instruction. */
	bool (*may_branch)(const struct cpu_insn *in, u64 insn);
	/* Replaces all of the above, for instructions that no number describes (x86). NULL = none. */
	int (*emulate)(const struct cpu *cpu, struct cpu_regs *regs, const u8 *code, size_t len,
		       const struct cpu_memory *memory);
	u8 breakpoint[CPU_BREAKPOINT_BYTES];
	u8 breakpoint_size; /* bytes */
};

/* Call the function of the first row of @patterns that fits @insn. -ENOTSUP if no row fits. */
int cpu_insn_do(struct cpu_insn *in, const struct cpu_pattern *patterns, u64 insn) __must_check;

/* Functions for rows: an instruction without effect, and one that is not emulated (-ENOTSUP). */
int cpu_insn_nothing(struct cpu_insn *in, u64 insn);
int cpu_insn_unknown(struct cpu_insn *in, u64 insn);

/* Functions for struct cpu_isa: all instructions have four bytes; the number of up to four bytes. */
size_t cpu_insn_length_4(const u8 *code, size_t len);
u64 cpu_insn_little_endian(const u8 *code, size_t length);
u64 cpu_insn_big_endian(const u8 *code, size_t length);

/* Word @index, in the kernel's order, of the registers. */
u64 cpu_regs_word(const struct cpu_regs *regs, u8 word_size, u32 index);
void cpu_regs_set_word(struct cpu_regs *regs, u8 word_size, u32 index, u64 value);
u64 cpu_insn_get(const struct cpu_insn *in, u32 index);
void cpu_insn_set(struct cpu_insn *in, u32 index, u64 value);

/* Load or store a number of @size bytes. 0 or -errno. A store must be the last step that can fail. */
int cpu_insn_load(const struct cpu_insn *in, taddr_t addr, size_t size, u64 *value) __must_check;
int cpu_insn_load_signed(const struct cpu_insn *in, taddr_t addr, size_t size, u64 *value) __must_check;
int cpu_insn_store(const struct cpu_insn *in, taddr_t addr, size_t size, u64 value) __must_check;

/* Write @value as @size bytes at @bytes, in the byte order of the CPU: for stores of several registers at once. */
void cpu_insn_bytes(const struct cpu_insn *in, u8 *bytes, size_t size, u64 value);

/* @bits bits of @word, from bit @shift up. */
static inline u32 cpu_bits(u64 word, u32 shift, u32 bits)
{
	return (u32)(word >> shift & ((1ULL << bits) - 1));
}

static inline s64 cpu_signed_bits(u64 word, u32 shift, u32 bits)
{
	return bits ? (s64)(word << (64 - shift - bits)) >> (64 - bits) : 0;
}

static inline u64 cpu_sign_extend(u64 value, u32 bits)
{
	return (u64)cpu_signed_bits(value, 0, bits);
}

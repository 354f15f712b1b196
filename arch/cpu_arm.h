/* SPDX-License-Identifier: GPL-2.0-or-later */
/* 32-bit ARM: what its two instruction sets, emulated in two files, share. */
#pragma once

#include "arch/cpu_insn.h"

/* The kernel's order: 16 registers, the status register, r0 at the entry of a system call. */
enum { ARM_FP = 7 /* of Thumb code */, ARM_SP = 13, ARM_LR, ARM_PC, ARM_CPSR, ARM_NR_WORDS = 18 };

enum {
	ARM_N = 1U << 31,
	ARM_Z = 1U << 30,
	ARM_C = 1U << 29,
	ARM_V = 1U << 28,
	ARM_THUMB = 1U << 5,
};

/* The operations of data processing, as ARM code numbers them. */
enum arm_op {
	ARM_AND,
	ARM_EOR,
	ARM_SUB,
	ARM_RSB,
	ARM_ADD,
	ARM_ADC,
	ARM_SBC,
	ARM_RSC,
	ARM_TST,
	ARM_TEQ,
	ARM_CMP,
	ARM_CMN,
	ARM_ORR,
	ARM_MOV,
	ARM_BIC,
	ARM_MVN,
	ARM_ORN, /* Thumb only */
};

/* A value out of the shifter, and the carry it leaves. */
struct arm_shifted {
	u32 value;
	bool carry;
};

u32 arm_reg(const struct cpu_insn *in, u32 nr); /* pc as the instruction sees it */
bool arm_is_thumb(const struct cpu_regs *regs);
bool arm_carry(const struct cpu_insn *in);

/* Does the condition numbered @cond hold? */
bool arm_condition(const struct cpu_insn *in, u32 cond);

/* @value shifted by a constant: @type 0 lsl, 1 lsr, 2 asr, 3 ror or, by 0, rrx. */
struct arm_shifted arm_shift(const struct cpu_insn *in, u32 value, u32 type, u32 amount);

/* Go to @addr: bit 0 chooses Thumb. Branches that stay in their set: arm_go(). */
int arm_interwork(struct cpu_insn *in, u32 addr);
int arm_go(struct cpu_insn *in, u32 addr);

/* A result into a register; into pc it is a branch as ldr and pop make it. */
int arm_put(struct cpu_insn *in, u32 nr, u32 value);

/* @op on @a and @b, into register @to if it has a result. */
int arm_calculate(struct cpu_insn *in, enum arm_op op, bool sets_flags, u32 to, u32 a, struct arm_shifted b);

/* ldm, stm and their like: the @list of registers, at @addr upwards. @base, if not above 15, becomes @new_base. */
int arm_multiple(struct cpu_insn *in, bool is_load, u32 addr, u32 list, u32 base, u32 new_base);

/* A load of @size bytes into, or a store of, register @nr. */
int arm_load(struct cpu_insn *in, u32 nr, u32 addr, u32 size, bool is_signed);
int arm_store(struct cpu_insn *in, u32 nr, u32 addr, u32 size);

/* struct cpu's functions for either set. @code: the instruction and what follows it. */
int arm_emulate_a32(struct cpu_insn *in, const u8 *code, size_t len);
int arm_emulate_t32(struct cpu_insn *in, const u8 *code, size_t len);
size_t arm_length_a32(const u8 *code, size_t len);
size_t arm_length_t32(const struct cpu_regs *regs, const u8 *code, size_t len);

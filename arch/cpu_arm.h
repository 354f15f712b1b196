/* SPDX-License-Identifier: GPL-2.0-or-later */
/* 32-bit ARM: functions for both instruction sets, which are emulated in two files. */
#pragma once

#include "arch/cpu_emulate.h"

/* The kernel's order: 16 registers, the status register, r0 at the entry of a system call. */
enum { ARM_FP = 7 /* of Thumb code */, ARM_SP = 13, ARM_LR, ARM_PC, ARM_CPSR, ARM_NR_WORDS = 18 };

enum {
	ARM_N = 1U << 31,
	ARM_Z = 1U << 30,
	ARM_C = 1U << 29,
	ARM_V = 1U << 28,
	ARM_THUMB = 1U << 5,
};

/* The operations of data processing, by their numbers in ARM code. */
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

/* A shifted value, and the carry of the shift. */
struct arm_shifted {
	u32 value;
	bool carry;
};

u32 arm_reg(const struct cpu_insn *in, u32 nr); /* pc as the instruction sees it */
bool arm_carry(const struct cpu_insn *in);

/* Does condition @cond hold for the flags of status register @flags, or for those of the instruction? */
bool arm_flags_hold(u32 flags, u32 cond);
bool arm_condition(const struct cpu_insn *in, u32 cond);

/* @value shifted by a constant: @type 0 lsl, 1 lsr, 2 asr, 3 ror or, by 0, rrx. */
struct arm_shifted arm_shift(const struct cpu_insn *in, u32 value, u32 type, u32 amount);

/* Branch to @addr. arm_interwork(): bit 0 chooses Thumb code. arm_go(): stay in the instruction set. */
int arm_interwork(struct cpu_insn *in, u32 addr);
int arm_go(struct cpu_insn *in, u32 addr);

/* Put a result into a register. A result in pc is a branch, as ldr and pop make it. */
int arm_put(struct cpu_insn *in, u32 nr, u32 value);

/* Apply @op to @a and @b, and put the result into register @to if @op has a result. */
int arm_calculate(struct cpu_insn *in, enum arm_op op, bool sets_flags, u32 to, u32 a, struct arm_shifted b);

/* ldm, stm, push, pop: the registers of @list, from @addr up. @base, if not above 15, becomes @new_base. */
int arm_multiple(struct cpu_insn *in, bool is_load, u32 addr, u32 list, u32 base, u32 new_base);

/* Load @size bytes into register @nr, or store them from it. */
int arm_load(struct cpu_insn *in, u32 nr, u32 addr, u32 size, bool is_signed);
int arm_store(struct cpu_insn *in, u32 nr, u32 addr, u32 size);

/* ARM and Thumb code. */
extern const struct cpu_isa arm_a32, arm_t32;

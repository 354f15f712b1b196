/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Instructions of ARM code (four bytes) carried out in a copy of the registers. */
#include "arch/cpu_arm.h"

#include <errno.h>

static u32 rn(u64 word)
{
	return cpu_bits(word, 16, 4);
}

static u32 rd(u64 word)
{
	return cpu_bits(word, 12, 4);
}

/* Eight bits, rotated right by an even number. */
static struct arm_shifted constant(const struct cpu_insn *in, u64 word)
{
	u32 by = 2 * cpu_bits(word, 8, 4), value = cpu_bits(word, 0, 8);

	return by ? arm_shift(in, value, 3, by) : (struct arm_shifted){ value, arm_carry(in) };
}

/* A register shifted by a constant. */
static struct arm_shifted shifted(const struct cpu_insn *in, u64 word)
{
	return arm_shift(in, arm_reg(in, cpu_bits(word, 0, 4)), cpu_bits(word, 5, 2), cpu_bits(word, 7, 5));
}

static int do_data_imm(struct cpu_insn *in, u64 word)
{
	return arm_calculate(in, cpu_bits(word, 21, 4), word >> 20 & 1, rd(word), arm_reg(in, rn(word)),
			     constant(in, word));
}

static int do_data_reg(struct cpu_insn *in, u64 word)
{
	return arm_calculate(in, cpu_bits(word, 21, 4), word >> 20 & 1, rd(word), arm_reg(in, rn(word)),
			     shifted(in, word));
}

static int do_movw(struct cpu_insn *in, u64 word)
{
	u32 value = rn(word) << 12 | cpu_bits(word, 0, 12);

	if (word >> 22 & 1)
		value = value << 16 | (u16)arm_reg(in, rd(word));
	return rd(word) == ARM_PC ? -ENOTSUP : arm_put(in, rd(word), value);
}

/*
 * The address of a load or store. Sets the base register if there is write-back. -ENOTSUP for unusual combinations.
 */
static int address(struct cpu_insn *in, u64 word, u32 offset, u32 *addr)
{
	bool is_pre = word >> 24 & 1, is_up = word >> 23 & 1, is_back = word >> 21 & 1;
	u32 base = arm_reg(in, rn(word)), moved = is_up ? base + offset : base - offset;

	*addr = is_pre ? moved : base;
	if (is_pre && !is_back)
		return 0;
	/* With neither bit set it is an access with user rights, which the target has anyway. */
	if (rn(word) == ARM_PC || rn(word) == rd(word))
		return -ENOTSUP;
	cpu_insn_set(in, rn(word), moved);
	return 0;
}

/* ldr, str, ldrb, strb */
static int do_single(struct cpu_insn *in, u64 word)
{
	u32 size = word >> 22 & 1 ? 1 : 4, addr;
	u32 offset = word >> 25 & 1 ? shifted(in, word).value : cpu_bits(word, 0, 12);
	int err = address(in, word, offset, &addr);

	if (err)
		return err;
	return word >> 20 & 1 ? arm_load(in, rd(word), addr, size, false)
			      : arm_store(in, rd(word), addr, size);
}

/* ldrh, strh, ldrsb, ldrsh; bits 5 and 6 say which */
static int do_half(struct cpu_insn *in, u64 word)
{
	u32 which = cpu_bits(word, 5, 2), size = which == 2 ? 1 : 2, addr;
	u32 offset = word >> 22 & 1 ? cpu_bits(word, 8, 4) << 4 | cpu_bits(word, 0, 4)
				    : arm_reg(in, cpu_bits(word, 0, 4));
	int err;

	if (!(word >> 20 & 1) && which != 1)
		return -ENOTSUP; /* ldrd, strd */
	err = address(in, word, offset, &addr);
	if (err)
		return err;
	return word >> 20 & 1 ? arm_load(in, rd(word), addr, size, which > 1)
			      : arm_store(in, rd(word), addr, size);
}

/* ldm, stm with their four directions */
static int do_multiple(struct cpu_insn *in, u64 word)
{
	bool is_before = word >> 24 & 1, is_up = word >> 23 & 1;
	u32 list = cpu_bits(word, 0, 16), bytes = 4 * (u32)__builtin_popcount(list),
	    base = arm_reg(in, rn(word));
	u32 new_base = is_up ? base + bytes : base - bytes;
	u32 addr = is_up ? base + 4 * is_before : base - bytes + 4 * !is_before;

	if (word >> 22 & 1 || rn(word) == ARM_PC)
		return -ENOTSUP;
	return arm_multiple(in, word >> 20 & 1, addr, list, word >> 21 & 1 ? rn(word) : 16, new_base);
}

static int do_branch(struct cpu_insn *in, u64 word)
{
	u32 target = arm_reg(in, ARM_PC) + ((u32)cpu_signed_bits(word, 0, 24) << 2);

	if (word >> 24 & 1)
		cpu_insn_set(in, ARM_LR, in->pc + 4);
	return arm_go(in, target);
}

/* bx, blx of a register */
static int do_bx(struct cpu_insn *in, u64 word)
{
	u32 target = arm_reg(in, cpu_bits(word, 0, 4));

	if (word >> 5 & 1)
		cpu_insn_set(in, ARM_LR, in->pc + 4);
	return arm_interwork(in, target);
}

static const struct cpu_pattern patterns[] = {
	{ 0x0fffffd0, 0x012fff10, do_bx },
	{ 0x0fffff00, 0x0320f000, cpu_insn_nothing }, /* nop, yield, ... */
	{ 0x0fb00000, 0x03000000, do_movw },
	{ 0x0e0000f0, 0x000000b0, do_half },
	{ 0x0e0000d0, 0x000000d0, do_half },
	{ 0x0e000090, 0x00000090, cpu_insn_unknown }, /* mul, swp, ... */
	{ 0x0d900000, 0x01000000,
	  cpu_insn_unknown }, /* mrs, msr, clz, ...: where comparisons have no flags */
	{ 0x0e000010, 0x00000000, do_data_reg },
	{ 0x0e000000, 0x02000000, do_data_imm },
	{ 0x0e000000, 0x04000000, do_single },
	{ 0x0e000010, 0x06000000, do_single },
	{ 0x0e000000, 0x08000000, do_multiple },
	{ 0x0e000000, 0x0a000000, do_branch },
	{ 0 },
};

static int carry_out(struct cpu_insn *in, u64 word)
{
	if (word >> 25 == 0x7d) { /* blx to a Thumb function */
		u32 distance = (u32)cpu_signed_bits(word, 0, 24) << 2 | (word >> 23 & 2);

		cpu_insn_set(in, ARM_LR, in->pc + 4);
		return arm_interwork(in, (arm_reg(in, ARM_PC) + distance) | 1);
	}
	if (word >> 28 == 15)
		return -ENOTSUP;
	return arm_condition(in, (u32)(word >> 28)) ? cpu_insn_do(in, patterns, word) : 0;
}

/* Instructions that write pc: results in it, loads of it, branches, and undefined ones. */
static bool may_branch(const struct cpu_insn *in, u64 word)
{
	u32 class = cpu_bits(word, 25, 3);
	bool is_pc = rd(word) == ARM_PC, is_load = word >> 20 & 1;

	(void)in;
	if (word >> 28 == 15)
		return class == 5;
	if (class == 5 || (class == 3 && (word & 0x01f000f0) == 0x01f000f0))
		return true;
	if (class == 4)
		return is_load && word >> 15 & 1;
	if (class == 2 || (class == 3 && !(word >> 4 & 1)))
		return is_load && is_pc;
	if (class > 1)
		return false;
	/* Comparisons and msr have no result; the codes between them are bx and others that branch. */
	if ((word & 0x0f9000f0) == 0x01000010 || (word & 0x0ff000d0) == 0x01200010 ||
	    (word & 0x0ff000f0) == 0x01200070)
		return true;
	return cpu_bits(word, 23, 2) != 2 && is_pc;
}

/* The breakpoint is an undefined instruction that the kernel takes for one. */
const struct cpu_isa arm_a32 = {
	.length = cpu_insn_length_4,
	.number = cpu_insn_little_endian,
	.carry_out = carry_out,
	.may_branch = may_branch,
	.breakpoint = { 0xf0, 0x01, 0xf0, 0xe7 },
	.breakpoint_size = 4,
};

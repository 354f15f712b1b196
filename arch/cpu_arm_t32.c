/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Instructions of Thumb code (two or four bytes) carried out in a copy of the registers, in IT blocks too. */
#include "arch/cpu_arm.h"

#include <errno.h>

/* Shifts of registers, for arm_shift(). */
enum { LSL, LSR, ASR, ROR };

/* ---- IT blocks: the status register holds the condition and the rest of the block, in two fields ---- */

static u32 it_state(const struct cpu_insn *in)
{
	u32 cpsr = arm_reg(in, ARM_CPSR);

	return cpu_bits(cpsr, 25, 2) | cpu_bits(cpsr, 10, 6) << 2;
}

static void set_it_state(struct cpu_insn *in, u32 state)
{
	u32 cpsr = arm_reg(in, ARM_CPSR) & ~0x0600fc00U;

	cpu_insn_set(in, ARM_CPSR, cpsr | (state & 3) << 25 | state >> 2 << 10);
}

static u32 next_it_state(u32 state)
{
	return state & 7 ? (state & 0xe0) | (state << 1 & 0x1f) : 0;
}

/* Outside of IT blocks, instructions of two bytes set flags. */
static bool sets_flags(const struct cpu_insn *in)
{
	return !(it_state(in) & 15);
}

/* ---- two bytes ---- */

static struct arm_shifted plain(const struct cpu_insn *in, u32 value)
{
	return (struct arm_shifted){ value, arm_carry(in) };
}

static u32 low(u64 word, u32 shift)
{
	return cpu_bits(word, shift, 3);
}

static int t_shift(struct cpu_insn *in, u64 word)
{
	struct arm_shifted b =
		arm_shift(in, arm_reg(in, low(word, 3)), cpu_bits(word, 11, 2), cpu_bits(word, 6, 5));

	return arm_calculate(in, ARM_MOV, sets_flags(in), low(word, 0), 0, b);
}

/* add, sub of a register or three bits */
static int t_add(struct cpu_insn *in, u64 word)
{
	u32 b = word >> 10 & 1 ? low(word, 6) : arm_reg(in, low(word, 6));

	return arm_calculate(in, word >> 9 & 1 ? ARM_SUB : ARM_ADD, sets_flags(in), low(word, 0),
			     arm_reg(in, low(word, 3)), plain(in, b));
}

/* mov, cmp, add, sub of eight bits */
static int t_imm(struct cpu_insn *in, u64 word)
{
	static const u8 ops[] = { ARM_MOV, ARM_CMP, ARM_ADD, ARM_SUB };
	enum arm_op op = ops[cpu_bits(word, 11, 2)];

	return arm_calculate(in, op, op == ARM_CMP || sets_flags(in), low(word, 8), arm_reg(in, low(word, 8)),
			     plain(in, word & 255));
}

static int t_registers(struct cpu_insn *in, u64 word)
{
	static const s8 ops[] = { ARM_AND, ARM_EOR, -1,	     -1,      -1,      ARM_ADC, ARM_SBC, -1,
				  ARM_TST, ARM_RSB, ARM_CMP, ARM_CMN, ARM_ORR, -1,	ARM_BIC, ARM_MVN };
	s8 op = ops[cpu_bits(word, 6, 4)];
	u32 a = arm_reg(in, low(word, 0)), b = arm_reg(in, low(word, 3));
	bool is_compare = op == ARM_TST || op == ARM_CMP || op == ARM_CMN;

	if (op < 0)
		return -ENOTSUP; /* shifts by registers, mul */
	if (op == ARM_RSB) {
		a = b;
		b = 0;
	}
	return arm_calculate(in, op, is_compare || sets_flags(in), low(word, 0), a, plain(in, b));
}

/* add, cmp, mov of all registers: no flags but cmp's; a result in pc stays in Thumb code */
static int t_high(struct cpu_insn *in, u64 word)
{
	u32 which = cpu_bits(word, 8, 2), to = cpu_bits(word, 7, 1) << 3 | low(word, 0);
	u32 a = arm_reg(in, to), b = arm_reg(in, cpu_bits(word, 3, 4));

	if (which == 1)
		return arm_calculate(in, ARM_CMP, true, 0, a, plain(in, b));
	b = which ? b : a + b;
	return to == ARM_PC ? arm_go(in, b) : arm_put(in, to, b);
}

static int t_bx(struct cpu_insn *in, u64 word)
{
	u32 target = arm_reg(in, cpu_bits(word, 3, 4));

	if (word >> 7 & 1)
		cpu_insn_set(in, ARM_LR, (in->pc + 2) | 1);
	return arm_interwork(in, target);
}

static u32 aligned_pc(const struct cpu_insn *in)
{
	return arm_reg(in, ARM_PC) & ~3U;
}

static int t_ldr_literal(struct cpu_insn *in, u64 word)
{
	return arm_load(in, low(word, 8), aligned_pc(in) + 4 * (word & 255), 4, false);
}

/* str, strh, strb, ldrsb, ldr, ldrh, ldrb, ldrsh with two registers */
static int t_access_reg(struct cpu_insn *in, u64 word)
{
	static const u8 sizes[] = { 4, 2, 1, 1, 4, 2, 1, 2 };
	u32 which = cpu_bits(word, 9, 3), addr = arm_reg(in, low(word, 3)) + arm_reg(in, low(word, 6));

	if (which < 3)
		return arm_store(in, low(word, 0), addr, sizes[which]);
	return arm_load(in, low(word, 0), addr, sizes[which], which == 3 || which == 7);
}

/* str, ldr, strb, ldrb, strh, ldrh with five bits */
static int t_access_imm(struct cpu_insn *in, u64 word)
{
	u32 size = word >> 15 ? 2 : word >> 12 & 1 ? 1 : 4;
	u32 addr = arm_reg(in, low(word, 3)) + size * cpu_bits(word, 6, 5);

	return word >> 11 & 1 ? arm_load(in, low(word, 0), addr, size, false)
			      : arm_store(in, low(word, 0), addr, size);
}

static int t_access_sp(struct cpu_insn *in, u64 word)
{
	u32 addr = arm_reg(in, ARM_SP) + 4 * (word & 255);

	return word >> 11 & 1 ? arm_load(in, low(word, 8), addr, 4, false)
			      : arm_store(in, low(word, 8), addr, 4);
}

/* adr; add of sp */
static int t_address(struct cpu_insn *in, u64 word)
{
	return arm_put(in, low(word, 8),
		       (word >> 11 & 1 ? arm_reg(in, ARM_SP) : aligned_pc(in)) + 4 * (word & 255));
}

static int t_sp(struct cpu_insn *in, u64 word)
{
	u32 by = 4 * cpu_bits(word, 0, 7), sp = arm_reg(in, ARM_SP);

	return arm_put(in, ARM_SP, word >> 7 & 1 ? sp - by : sp + by);
}

static int t_cbz(struct cpu_insn *in, u64 word)
{
	u32 distance = cpu_bits(word, 9, 1) << 6 | cpu_bits(word, 3, 5) << 1;

	if ((arm_reg(in, low(word, 0)) == 0) == (word >> 11 & 1))
		return 0;
	return arm_go(in, arm_reg(in, ARM_PC) + distance);
}

/* sxth, sxtb, uxth, uxtb */
static int t_extend(struct cpu_insn *in, u64 word)
{
	u32 which = cpu_bits(word, 6, 2), bits = which & 1 ? 8 : 16, value = arm_reg(in, low(word, 3));

	return arm_put(in, low(word, 0),
		       which < 2 ? (u32)cpu_signed_bits(value, 0, bits) : cpu_bits(value, 0, bits));
}

static int t_push(struct cpu_insn *in, u64 word)
{
	u32 list = (word & 255) | (word >> 8 & 1) << ARM_LR, sp = arm_reg(in, ARM_SP);

	sp -= 4 * (u32)__builtin_popcount(list);
	return arm_multiple(in, false, sp, list, ARM_SP, sp);
}

static int t_pop(struct cpu_insn *in, u64 word)
{
	u32 list = (word & 255) | (word >> 8 & 1) << ARM_PC, sp = arm_reg(in, ARM_SP);

	return arm_multiple(in, true, sp, list, ARM_SP, sp + 4 * (u32)__builtin_popcount(list));
}

/* stm, ldm. If the base register itself is loaded, there is no write-back. */
static int t_multiple(struct cpu_insn *in, u64 word)
{
	u32 list = word & 255, nr = low(word, 8), base = arm_reg(in, nr);
	bool is_load = word >> 11 & 1;

	return arm_multiple(in, is_load, base, list, is_load && list >> nr & 1 ? 16 : nr,
			    base + 4 * (u32)__builtin_popcount(list));
}

/* Hints; with a mask it is the IT instruction. */
static int t_it(struct cpu_insn *in, u64 word)
{
	if (word & 15)
		set_it_state(in, word & 255);
	return 0;
}

static int t_branch_if(struct cpu_insn *in, u64 word)
{
	if (cpu_bits(word, 8, 4) >= 14)
		return -ENOTSUP; /* udf, svc */
	if (!arm_condition(in, cpu_bits(word, 8, 4)))
		return 0;
	return arm_go(in, arm_reg(in, ARM_PC) + ((u32)cpu_signed_bits(word, 0, 8) << 1));
}

static int t_branch(struct cpu_insn *in, u64 word)
{
	return arm_go(in, arm_reg(in, ARM_PC) + ((u32)cpu_signed_bits(word, 0, 11) << 1));
}

static const struct cpu_pattern short_patterns[] = {
	{ 0xf800, 0x1800, t_add },	  { 0xe000, 0x0000, t_shift },	    { 0xe000, 0x2000, t_imm },
	{ 0xfc00, 0x4000, t_registers },  { 0xff07, 0x4700, t_bx },	    { 0xff00, 0x4400, t_high },
	{ 0xff00, 0x4500, t_high },	  { 0xff00, 0x4600, t_high },	    { 0xf800, 0x4800, t_ldr_literal },
	{ 0xf000, 0x5000, t_access_reg }, { 0xe000, 0x6000, t_access_imm }, { 0xf000, 0x8000, t_access_imm },
	{ 0xf000, 0x9000, t_access_sp },  { 0xf000, 0xa000, t_address },    { 0xff00, 0xb000, t_sp },
	{ 0xf500, 0xb100, t_cbz },	  { 0xff00, 0xb200, t_extend },	    { 0xfe00, 0xb400, t_push },
	{ 0xfe00, 0xbc00, t_pop },	  { 0xff00, 0xbf00, t_it },	    { 0xf000, 0xc000, t_multiple },
	{ 0xf000, 0xd000, t_branch_if },  { 0xf800, 0xe000, t_branch },	    { 0 },
};

/* ---- four bytes: the first two are the upper half of @word ---- */

static u32 rn(u64 word)
{
	return cpu_bits(word, 16, 4);
}

static u32 rt(u64 word)
{
	return cpu_bits(word, 12, 4);
}

static u32 rd(u64 word)
{
	return cpu_bits(word, 8, 4);
}

/* Twelve bits: a byte in four arrangements, or eight bits rotated. */
static struct arm_shifted constant(const struct cpu_insn *in, u64 word)
{
	u32 bits = cpu_bits(word, 26, 1) << 11 | cpu_bits(word, 12, 3) << 8 | cpu_bits(word, 0, 8);
	u32 byte = bits & 255;
	const u32 arranged[] = { byte, byte << 16 | byte, byte << 24 | byte << 8, byte * 0x01010101U };

	if (bits >> 10 == 0)
		return (struct arm_shifted){ arranged[bits >> 8 & 3], arm_carry(in) };
	return arm_shift(in, (bits & 127) | 128, ROR, bits >> 7);
}

/*
 * Data processing. orr without a first operand is mov, orn is mvn. Without a destination and, eor, add, sub compare.
 */
static int calculate(struct cpu_insn *in, u64 word, u32 to, struct arm_shifted b)
{
	static const s8 ops[] = { ARM_AND, ARM_BIC, ARM_ORR, ARM_ORN, ARM_EOR, -1,	-1,	 -1,
				  ARM_ADD, -1,	    ARM_ADC, ARM_SBC, -1,      ARM_SUB, ARM_RSB, -1 };
	s8 op = ops[cpu_bits(word, 21, 4)];
	bool sets = word >> 20 & 1;

	if (op < 0)
		return -ENOTSUP;
	if (rn(word) == ARM_PC && op != ARM_ORR && op != ARM_ORN)
		return -ENOTSUP;
	if (rn(word) == ARM_PC)
		op = op == ARM_ORR ? ARM_MOV : ARM_MVN;
	if (to == ARM_PC) {
		op = op == ARM_AND   ? ARM_TST
		     : op == ARM_EOR ? ARM_TEQ
		     : op == ARM_ADD ? ARM_CMN
		     : op == ARM_SUB ? ARM_CMP
				     : -1;
		if (op < 0 || !sets)
			return -ENOTSUP;
		to = 0;
	}
	return arm_calculate(in, op, sets, to, arm_reg(in, rn(word)), b);
}

static int w_data_imm(struct cpu_insn *in, u64 word)
{
	return calculate(in, word, rd(word), constant(in, word));
}

static int w_data_reg(struct cpu_insn *in, u64 word)
{
	u32 amount = cpu_bits(word, 12, 3) << 2 | cpu_bits(word, 6, 2);

	return calculate(in, word, rd(word),
			 arm_shift(in, arm_reg(in, cpu_bits(word, 0, 4)), cpu_bits(word, 4, 2), amount));
}

static u32 twelve_bits(u64 word)
{
	return cpu_bits(word, 26, 1) << 11 | cpu_bits(word, 12, 3) << 8 | cpu_bits(word, 0, 8);
}

/* addw, subw, adr: twelve plain bits, no flags */
static int w_add(struct cpu_insn *in, u64 word)
{
	u32 base = rn(word) == ARM_PC ? aligned_pc(in) : arm_reg(in, rn(word));

	return arm_put(in, rd(word), word >> 23 & 1 ? base - twelve_bits(word) : base + twelve_bits(word));
}

static int w_movw(struct cpu_insn *in, u64 word)
{
	u32 value = rn(word) << 12 | twelve_bits(word);

	return arm_put(in, rd(word), word >> 23 & 1 ? value << 16 | (u16)arm_reg(in, rd(word)) : value);
}

/* The distance of b.w and bl: a sign, two bits that depend on the sign, then 10 and 11 bits. */
static u32 far_distance(u64 word)
{
	u32 sign = cpu_bits(word, 26, 1), i1 = cpu_bits(word, 13, 1) == sign,
	    i2 = cpu_bits(word, 11, 1) == sign;

	return (0 - sign) << 24 | i1 << 23 | i2 << 22 | cpu_bits(word, 16, 10) << 12 |
	       cpu_bits(word, 0, 11) << 1;
}

static int w_branch(struct cpu_insn *in, u64 word)
{
	return arm_go(in, arm_reg(in, ARM_PC) + far_distance(word));
}

static int w_call(struct cpu_insn *in, u64 word)
{
	u32 pc = arm_reg(in, ARM_PC);

	cpu_insn_set(in, ARM_LR, (in->pc + 4) | 1);
	if (word >> 12 & 1)
		return arm_go(in, pc + far_distance(word));
	return arm_interwork(in, (pc & ~3U) + far_distance(word));
}

static int w_branch_if(struct cpu_insn *in, u64 word)
{
	u32 distance = (0 - cpu_bits(word, 26, 1)) << 20 | cpu_bits(word, 11, 1) << 19 |
		       cpu_bits(word, 13, 1) << 18 | cpu_bits(word, 16, 6) << 12 | cpu_bits(word, 0, 11) << 1;

	if (cpu_bits(word, 22, 4) >= 14)
		return -ENOTSUP; /* msr, barriers, ... */
	return arm_condition(in, cpu_bits(word, 22, 4)) ? arm_go(in, arm_reg(in, ARM_PC) + distance) : 0;
}

/* tbb, tbh */
static int w_table(struct cpu_insn *in, u64 word)
{
	u32 is_half = word >> 4 & 1, base = arm_reg(in, rn(word));
	u64 distance;
	int err = cpu_insn_load(in, base + (arm_reg(in, cpu_bits(word, 0, 4)) << is_half), 1 + is_half,
				&distance);

	return err ? err : arm_go(in, arm_reg(in, ARM_PC) + 2 * (u32)distance);
}

/* Lists of registers that the architecture leaves undefined: sp; a stored pc; lr and pc; the base with write-back. */
static bool is_odd_list(u64 word, u32 list)
{
	bool is_load = word >> 20 & 1, writes_back = word >> 21 & 1;
	u32 link_and_pc = 1U << ARM_LR | 1U << ARM_PC;

	return list >> ARM_SP & 1 || (is_load ? (list & link_and_pc) == link_and_pc : list >> ARM_PC & 1) ||
	       (writes_back && list >> rn(word) & 1);
}

/* stm, ldm, push, pop: upwards, or downwards with the address changed before. */
static int w_multiple(struct cpu_insn *in, u64 word)
{
	bool is_down = word >> 24 & 1, is_load = word >> 20 & 1;
	u32 list = cpu_bits(word, 0, 16), bytes = 4 * (u32)__builtin_popcount(list),
	    base = arm_reg(in, rn(word));
	u32 moved = is_down ? base - bytes : base + bytes;

	if (is_down == (word >> 23 & 1) || rn(word) == ARM_PC || bytes < 8 || is_odd_list(word, list))
		return -ENOTSUP;
	return arm_multiple(in, is_load, is_down ? moved : base, list, word >> 21 & 1 ? rn(word) : 16, moved);
}

/* Loads and stores of one register. Bits 21 and 22: size; 24: signed; 23: twelve bits, else eight or a register. */
static int w_access(struct cpu_insn *in, u64 word)
{
	u32 size = 1U << cpu_bits(word, 21, 2), base = arm_reg(in, rn(word)), addr, moved;
	bool is_load = word >> 20 & 1, is_signed = word >> 24 & 1;

	if (size == 8 || (is_load && rt(word) == ARM_PC && size != 4) ||
	    (is_signed && (!is_load || size == 4)))
		return -ENOTSUP;
	if (rn(word) == ARM_PC) {
		if (!is_load)
			return -ENOTSUP;
		addr = word >> 23 & 1 ? aligned_pc(in) + cpu_bits(word, 0, 12)
				      : aligned_pc(in) - cpu_bits(word, 0, 12);
	} else if (word >> 23 & 1) {
		addr = base + cpu_bits(word, 0, 12);
	} else if (!(word >> 11 & 1)) {
		if (cpu_bits(word, 6, 6))
			return -ENOTSUP;
		addr = base + (arm_reg(in, cpu_bits(word, 0, 4)) << cpu_bits(word, 4, 2));
	} else {
		bool is_pre = word >> 10 & 1, is_back = word >> 8 & 1;

		moved = word >> 9 & 1 ? base + (word & 255) : base - (word & 255);
		addr = is_pre ? moved : base;
		if ((!is_pre && !is_back) || (is_back && rn(word) == rt(word)))
			return -ENOTSUP;
		if (is_back)
			cpu_insn_set(in, rn(word), moved);
	}
	return is_load ? arm_load(in, rt(word), addr, size, is_signed) : arm_store(in, rt(word), addr, size);
}

/* ldrd, strd: eight bits of words */
static int w_double(struct cpu_insn *in, u64 word)
{
	bool is_pre = word >> 24 & 1, is_back = word >> 21 & 1, is_load = word >> 20 & 1;
	u32 base = arm_reg(in, rn(word)), second = rd(word), by = 4 * (word & 255), addr, moved;
	u64 value = (u64)arm_reg(in, second) << 32 | arm_reg(in, rt(word));
	int err;

	if (!is_pre && !is_back)
		return -ENOTSUP; /* exclusive ones, tbb */
	if (rt(word) >= ARM_SP || second >= ARM_SP || rn(word) == ARM_PC ||
	    (is_back && (rn(word) == rt(word) || rn(word) == second)))
		return -ENOTSUP;
	moved = word >> 23 & 1 ? base + by : base - by;
	addr = is_pre ? moved : base;
	if (addr & 3)
		return -ENOTSUP;
	err = is_load ? cpu_insn_load(in, addr, 8, &value) : cpu_insn_store(in, addr, 8, value);
	if (err)
		return err;
	if (is_load) {
		cpu_insn_set(in, rt(word), (u32)value);
		cpu_insn_set(in, second, value >> 32);
	}
	if (is_back)
		cpu_insn_set(in, rn(word), moved);
	return 0;
}

static const struct cpu_pattern patterns[] = {
	{ 0xfff0ffe0, 0xe8d0f000, w_table },	{ 0xfe400000, 0xe8000000, w_multiple },
	{ 0xfe400000, 0xe8400000, w_double },	{ 0xfe008000, 0xea000000, w_data_reg },
	{ 0xfa008000, 0xf0000000, w_data_imm }, { 0xfbf08000, 0xf2000000, w_add },
	{ 0xfbf08000, 0xf2a00000, w_add },	{ 0xfbf08000, 0xf2400000, w_movw },
	{ 0xfbf08000, 0xf2c00000, w_movw },	{ 0xffffff00, 0xf3af8000, cpu_insn_nothing }, /* nop.w */
	{ 0xf800d000, 0xf0009000, w_branch },	{ 0xf800d000, 0xf000d000, w_call },
	{ 0xf800d001, 0xf000c000, w_call },	{ 0xf800d000, 0xf0008000, w_branch_if },
	{ 0xfe000000, 0xf8000000, w_access },	{ 0 },
};

/* Four bytes if the upper five bits are 11101, 11110 or 11111. */
static size_t length_of(const u8 *code, size_t len)
{
	size_t length = len < 2 ? 0 : code[1] >> 3 >= 0x1d ? 4 : 2;

	return length > len ? 0 : length;
}

static u64 number(const u8 *code, size_t length)
{
	u64 first = cpu_insn_little_endian(code, 2);

	return length == 4 ? first << 16 | cpu_insn_little_endian(code + 2, 2) : first;
}

static int carry_out(struct cpu_insn *in, u64 word)
{
	u32 state = it_state(in);
	int err = 0;

	if (!(state & 15) || arm_condition(in, state >> 4))
		err = cpu_insn_do(in, in->length == 4 ? patterns : short_patterns, word);
	if (!err && state & 15)
		set_it_state(in, next_it_state(state));
	return err;
}

/* Instructions of four bytes that may write pc: branches, tables, loads of it, and undefined ones. */
static bool may_branch_long(u64 word)
{
	if ((word & 0xf8008000) == 0xf0008000)
		return (word & 0xffff0000) != 0xf3af0000 && (word & 0xff0f8000) != 0xf30f8000;
	if ((word & 0xfe500000) == 0xe8100000)
		return word >> 15 & 1;
	if ((word & 0xfff0ffe0) == 0xe8d0f000)
		return true;
	return (word & 0xfe100000) == 0xf8100000 && rt(word) == ARM_PC && cpu_bits(word, 21, 2) == 2;
}

static bool may_branch(const struct cpu_insn *in, u64 word)
{
	u32 cpsr = arm_reg(in, ARM_CPSR);

	/* In an IT block the breakpoint behind the instruction would be conditional too, and might be skipped. */
	if (cpu_bits(cpsr, 25, 2) | cpu_bits(cpsr, 10, 1))
		return true;
	if (in->length == 4)
		return may_branch_long(word);
	/* bx, a result in pc, cbz, pop with pc, bkpt, b, udf */
	if ((word & 0xff00) == 0x4700 || ((word & 0xfc87) == 0x4487 && (word & 0xff00) != 0x4500) ||
	    (word & 0xf500) == 0xb100 || (word & 0xff00) == 0xbd00 || (word & 0xff00) == 0xbe00)
		return true;
	return (word >> 12 == 13 && (word & 0xff00) != 0xdf00) || word >> 12 == 14;
}

/* The breakpoint is an undefined instruction that the kernel takes for one: udf #1. */
const struct cpu_isa arm_t32 = {
	.length = length_of,
	.number = number,
	.carry_out = carry_out,
	.may_branch = may_branch,
	.breakpoint = { 0x01, 0xde },
	.breakpoint_size = 2,
};

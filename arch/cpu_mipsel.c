/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * 32-bit MIPS (o32, little endian) for breakpoints. A branch is carried out with the instruction in its delay slot,
 * which therefore must be one that is known too.
 */
#include "arch/cpu_emulate.h"

#include <elf.h>
#include <errno.h>

/* The kernel's order: six unused words, 32 registers, lo, hi, pc and the coprocessor's registers. */
enum {
	R0 = 6,
	V0 = R0 + 2,
	A0 = R0 + 4,
	SP = R0 + 29,
	FP = R0 + 30,
	RA = R0 + 31,
	LO = 38,
	HI,
	PC,
	NR_WORDS = 45
};
enum { REG_RA = 31 };

static u32 r(const struct cpu_insn *in, u32 nr)
{
	return nr ? (u32)cpu_insn_get(in, R0 + nr) : 0;
}

static int set_r(struct cpu_insn *in, u32 nr, u32 value)
{
	if (nr)
		cpu_insn_set(in, R0 + nr, value);
	return 0;
}

static u32 rs(const struct cpu_insn *in, u64 word)
{
	return r(in, cpu_bits(word, 21, 5));
}

static u32 rt(const struct cpu_insn *in, u64 word)
{
	return r(in, cpu_bits(word, 16, 5));
}

static u32 imm(u64 word)
{
	return (u32)cpu_signed_bits(word, 0, 16);
}

static int put_rt(struct cpu_insn *in, u64 word, u32 value)
{
	return set_r(in, cpu_bits(word, 16, 5), value);
}

static int put_rd(struct cpu_insn *in, u64 word, u32 value)
{
	return set_r(in, cpu_bits(word, 11, 5), value);
}

/* The operation with the low four bits @op of its number among those of registers. */
static u32 operate(u32 op, u32 a, u32 b)
{
	const u32 results[] = {
		[1] = a + b,
		[3] = a - b,
		[4] = a & b,
		[5] = a | b,
		[6] = a ^ b,
		[7] = ~(a | b),
		[10] = (s32)a < (s32)b,
		[11] = a < b,
	};

	return results[op];
}

/* addu, subu, and, or, xor, nor, slt, sltu */
static int do_registers(struct cpu_insn *in, u64 word)
{
	return put_rd(in, word, operate(word & 15, rs(in, word), rt(in, word)));
}

/* addiu, slti, sltiu: these have signed constants, and the numbers of their operations are those of registers. */
static int do_arithmetic(struct cpu_insn *in, u64 word)
{
	u32 op = cpu_bits(word, 26, 4);

	return put_rt(in, word, operate(op == 9 ? 1 : op, rs(in, word), imm(word)));
}

/* andi, ori, xori */
static int do_logical(struct cpu_insn *in, u64 word)
{
	return put_rt(in, word, operate(cpu_bits(word, 26, 3), rs(in, word), (u16)word));
}

static int do_lui(struct cpu_insn *in, u64 word)
{
	return put_rt(in, word, word << 16);
}

/* lb, lh, -, lw, lbu, lhu. Only aligned accesses: the kernel handles the others. */
static int do_load(struct cpu_insn *in, u64 word)
{
	u32 width = cpu_bits(word, 26, 3), addr = rs(in, word) + imm(word);
	u32 size = (width & 3) == 3 ? 4 : 1U << (width & 3);
	u64 value;
	int err;

	if ((width & 3) == 2 || width == 7 || addr & (size - 1))
		return -ENOTSUP;
	err = width & 4 ? cpu_insn_load(in, addr, size, &value)
			: cpu_insn_load_signed(in, addr, size, &value);
	return err ? err : put_rt(in, word, (u32)value);
}

static int do_store(struct cpu_insn *in, u64 word)
{
	u32 width = cpu_bits(word, 26, 3), addr = rs(in, word) + imm(word),
	    size = width == 3 ? 4 : 1U << width;

	return addr & (size - 1) ? -ENOTSUP : cpu_insn_store(in, addr, size, rt(in, word));
}

/* sll, srl, sra */
static int do_shift(struct cpu_insn *in, u64 word)
{
	u32 value = rt(in, word), by = cpu_bits(word, 6, 5);

	if (word & 1)
		return put_rd(in, word, (u32)((s32)value >> by));
	return put_rd(in, word, word & 2 ? value >> by : value << by);
}

/* movz, movn */
static int do_move_if(struct cpu_insn *in, u64 word)
{
	return (rt(in, word) != 0) == (word & 1) ? put_rd(in, word, rs(in, word)) : 0;
}

/* mfhi, mflo */
static int do_move_from(struct cpu_insn *in, u64 word)
{
	return put_rd(in, word, (u32)cpu_insn_get(in, word & 2 ? LO : HI));
}

static const struct cpu_pattern plain[] = {
	{ 0xfc000000, 0x24000000, do_arithmetic },
	{ 0xf8000000, 0x28000000, do_arithmetic },
	{ 0xf8000000, 0x30000000, do_logical },
	{ 0xfc000000, 0x38000000, do_logical },
	{ 0xffe00000, 0x3c000000, do_lui },
	{ 0xe0000000, 0x80000000, do_load },
	{ 0xfc000000, 0xa0000000, do_store },
	{ 0xfc000000, 0xa4000000, do_store },
	{ 0xfc000000, 0xac000000, do_store },
	{ 0xffe0003f, 0x00000000, do_shift },
	{ 0xffe0003e, 0x00000002, do_shift },
	{ 0xfc0007fd, 0x00000021, do_registers },
	{ 0xfc0007fc, 0x00000024, do_registers },
	{ 0xfc0007fe, 0x0000002a, do_registers },
	{ 0xfc0007fe, 0x0000000a, do_move_if },
	{ 0xffff07fd, 0x00000010, do_move_from },
	{ 0 },
};

/* Branch if @is_taken. Otherwise in->next is already behind the delay slot. */
static int branch_if(struct cpu_insn *in, u64 word, bool is_taken)
{
	if (is_taken)
		in->next = (u32)(in->pc + 4 + (imm(word) << 2));
	return 0;
}

/* beq, bne */
static int do_branch_equal(struct cpu_insn *in, u64 word)
{
	return branch_if(in, word, (rs(in, word) != rt(in, word)) == (word >> 26 & 1));
}

/* blez, bgtz */
static int do_branch_sign(struct cpu_insn *in, u64 word)
{
	return branch_if(in, word, ((s32)rs(in, word) > 0) == (word >> 26 & 1));
}

/* bltz, bgez, and with a link register (bal) */
static int do_bltz(struct cpu_insn *in, u64 word)
{
	bool is_taken = ((s32)rs(in, word) < 0) != cpu_bits(word, 16, 1);

	if (cpu_bits(word, 20, 1))
		set_r(in, REG_RA, (u32)in->pc + 8);
	return branch_if(in, word, is_taken);
}

static int do_j(struct cpu_insn *in, u64 word)
{
	if (word >> 26 & 1)
		set_r(in, REG_RA, (u32)in->pc + 8);
	in->next = (u32)((in->pc + 4) & 0xf0000000) | cpu_bits(word, 0, 26) << 2;
	return 0;
}

/* jr, jalr. A target with bit 0 set is MIPS16 code, which is not known here. */
static int do_jr(struct cpu_insn *in, u64 word)
{
	u32 to = rs(in, word);

	if (to & 3)
		return -ENOTSUP;
	if (word & 1)
		put_rd(in, word, (u32)in->pc + 8);
	in->next = to;
	return 0;
}

static const struct cpu_pattern branches[] = {
	{ 0xf8000000, 0x10000000, do_branch_equal },
	{ 0xf81f0000, 0x18000000, do_branch_sign },
	{ 0xfc0e0000, 0x04000000, do_bltz },
	{ 0xf8000000, 0x08000000, do_j },
	{ 0xfc1fffff & ~0x7c0U, 0x00000008, do_jr },
	{ 0xfc1f003f & ~0x7c0U, 0x00000009, do_jr },
	{ 0 },
};

/*
 * A branch is carried out with its delay slot. If the delay slot cannot be emulated, nothing changes: the link register
 * is set in the copy of the registers only.
 */
static int carry_out(struct cpu_insn *in, u64 word)
{
	int err = cpu_insn_do(in, plain, word);

	if (err != -ENOTSUP || in->len < 8)
		return err;
	in->next = in->pc + 8;
	err = cpu_insn_do(in, branches, word);
	return err ? err : cpu_insn_do(in, plain, cpu_insn_little_endian(in->code + 4, 4));
}

/* Branches by major opcode; jr, jalr and break of the special opcode; branches of coprocessors; likely branches. */
static bool may_branch(const struct cpu_insn *in, u64 word)
{
	u32 major = cpu_bits(word, 26, 6), minor = cpu_bits(word, 0, 6);

	(void)in;
	if (!major)
		return minor == 8 || minor == 9 || minor == 13;
	if (major >= 16 && major <= 18)
		return cpu_bits(word, 21, 5) == 8;
	return major <= 7 || (major >= 20 && major <= 23) || major == 29 || major == 50 || major == 54 ||
	       major == 58 || major == 62;
}

static const struct cpu_isa isa = {
	.length = cpu_insn_length_4,
	.number = cpu_insn_little_endian,
	.carry_out = carry_out,
	.may_branch = may_branch,
	.breakpoint = { 0x0d, 0x00, 0x00, 0x00 }, /* break 0 */
	.breakpoint_size = 4,
};

const struct cpu cpu_mipsel = {
	.name = "mipsel",
	.machine = EM_MIPS,
	.word_size = 4,
	.has_link = true,
	.regs_size = NR_WORDS * 4,
	.words = { [CPU_PC] = PC,
		   [CPU_SP] = SP,
		   [CPU_FP] = FP,
		   [CPU_LINK] = RA,
		   [CPU_RESULT] = V0,
		   [CPU_ARG1] = A0,
		   [CPU_ARG2] = A0 + 1,
		   [CPU_ARG3] = A0 + 2,
		   [CPU_ARG4] = A0 + 3 },
	.isa = &isa,
};

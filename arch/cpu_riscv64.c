/* SPDX-License-Identifier: GPL-2.0-or-later */
/* riscv64 for breakpoints. Emulates the integer instructions of four and of two bytes. */
#include "arch/cpu_emulate.h"

#include <elf.h>
#include <errno.h>

/* The kernel's order: pc in place of x0, which is always 0. */
enum { RA = 1, SP = 2, S0 = 8, A0 = 10, NR_WORDS = 32 };

static u64 x(const struct cpu_insn *in, u32 nr)
{
	return nr ? cpu_insn_get(in, nr) : 0;
}

static int set_x(struct cpu_insn *in, u32 nr, u64 value)
{
	if (nr)
		cpu_insn_set(in, nr, value);
	return 0;
}

static u32 rd(u64 word)
{
	return cpu_bits(word, 7, 5);
}

static u64 rs1(const struct cpu_insn *in, u64 word)
{
	return x(in, cpu_bits(word, 15, 5));
}

static u64 rs2(const struct cpu_insn *in, u64 word)
{
	return x(in, cpu_bits(word, 20, 5));
}

static int load(struct cpu_insn *in, u32 to, taddr_t addr, u32 width)
{
	u64 value;
	int err = width & 4 ? cpu_insn_load(in, addr, 1U << (width & 3), &value)
			    : cpu_insn_load_signed(in, addr, 1U << width, &value);

	return err ? err : set_x(in, to, value);
}

/* The operation that funct3 numbers. @is_other: its second form (sub, sra). */
static u64 calculate(u32 funct3, bool is_other, u64 a, u64 b)
{
	const u64 results[] = {
		is_other ? a - b : a + b,
		a << (b & 63),
		(s64)a<(s64)b, a<b, a ^ b, is_other ? (u64)((s64)a >> (b & 63)) : a>>(b & 63),
		a | b,
		a & b,
	};

	return results[funct3];
}

/* Like calculate(), on the lower 32 bits. Only add, sub, sll, srl, sra. */
static u64 calculate_32(u32 funct3, bool is_other, u64 a, u64 b)
{
	u32 shift = b & 31;

	if (funct3 == 1)
		return cpu_sign_extend(a << shift, 32);
	if (funct3 == 5)
		return is_other ? (u64)((s64)(s32)a >> shift) : cpu_sign_extend((u32)a >> shift, 32);
	return cpu_sign_extend(is_other ? a - b : a + b, 32);
}

static bool is_taken(u32 funct3, u64 a, u64 b)
{
	bool holds = funct3 >> 1 == 0 ? a == b : funct3 >> 1 == 2 ? (s64)a < (s64)b : a < b;

	return holds != (funct3 & 1);
}

static int do_load(struct cpu_insn *in, u64 word)
{
	u32 width = cpu_bits(word, 12, 3);

	return width == 7 ? -ENOTSUP
			  : load(in, rd(word), rs1(in, word) + (u64)cpu_signed_bits(word, 20, 12), width);
}

static int do_store(struct cpu_insn *in, u64 word)
{
	u64 offset = (u64)cpu_signed_bits(word, 25, 7) << 5 | rd(word);

	if (cpu_bits(word, 12, 3) > 3)
		return -ENOTSUP;
	return cpu_insn_store(in, rs1(in, word) + offset, 1U << cpu_bits(word, 12, 3), rs2(in, word));
}

static int do_immediate(struct cpu_insn *in, u64 word)
{
	u32 funct3 = cpu_bits(word, 12, 3);
	bool is_shift = (funct3 & 3) == 1;

	/* A shift with other bits set is an instruction of an extension (Zbb). */
	if (is_shift && word >> 26 & ~(funct3 == 5 ? 16U : 0))
		return -ENOTSUP;
	return set_x(in, rd(word),
		     calculate(funct3, is_shift && word >> 30 & 1, rs1(in, word),
			       is_shift ? cpu_bits(word, 20, 6) : (u64)cpu_signed_bits(word, 20, 12)));
}

static int do_immediate_32(struct cpu_insn *in, u64 word)
{
	u32 funct3 = cpu_bits(word, 12, 3);
	bool is_shift = (funct3 & 3) == 1;

	if ((funct3 && !is_shift) || (is_shift && word >> 25 & ~(funct3 == 5 ? 32U : 0)))
		return -ENOTSUP;
	return set_x(in, rd(word),
		     calculate_32(funct3, is_shift && word >> 30 & 1, rs1(in, word),
				  is_shift ? cpu_bits(word, 20, 5) : (u64)cpu_signed_bits(word, 20, 12)));
}

/* True for funct7 0, and 32 of sub and sra. Other values are multiplications, divisions and extensions. */
static bool is_plain(u64 word)
{
	u32 funct3 = cpu_bits(word, 12, 3), funct7 = word >> 25;

	return !funct7 || (funct7 == 32 && (!funct3 || funct3 == 5));
}

static int do_registers(struct cpu_insn *in, u64 word)
{
	if (!is_plain(word))
		return -ENOTSUP;
	return set_x(in, rd(word),
		     calculate(cpu_bits(word, 12, 3), word >> 30 & 1, rs1(in, word), rs2(in, word)));
}

static int do_registers_32(struct cpu_insn *in, u64 word)
{
	u32 funct3 = cpu_bits(word, 12, 3);

	if (!is_plain(word) || (funct3 && (funct3 & 3) != 1))
		return -ENOTSUP;
	return set_x(in, rd(word), calculate_32(funct3, word >> 30 & 1, rs1(in, word), rs2(in, word)));
}

static int do_lui(struct cpu_insn *in, u64 word)
{
	return set_x(in, rd(word), (u64)cpu_signed_bits(word, 12, 20) << 12);
}

static int do_auipc(struct cpu_insn *in, u64 word)
{
	return set_x(in, rd(word), in->pc + ((u64)cpu_signed_bits(word, 12, 20) << 12));
}

static int do_jal(struct cpu_insn *in, u64 word)
{
	u64 distance = (u64)cpu_signed_bits(word, 31, 1) << 20 | cpu_bits(word, 12, 8) << 12 |
		       cpu_bits(word, 20, 1) << 11 | cpu_bits(word, 21, 10) << 1;

	set_x(in, rd(word), in->next);
	in->next = in->pc + distance;
	return 0;
}

static int do_jalr(struct cpu_insn *in, u64 word)
{
	taddr_t to = (rs1(in, word) + (u64)cpu_signed_bits(word, 20, 12)) & ~1ULL;

	set_x(in, rd(word), in->next);
	in->next = to;
	return 0;
}

static int do_branch(struct cpu_insn *in, u64 word)
{
	u64 distance = (u64)cpu_signed_bits(word, 31, 1) << 12 | cpu_bits(word, 7, 1) << 11 |
		       cpu_bits(word, 25, 6) << 5 | cpu_bits(word, 8, 4) << 1;

	if (cpu_bits(word, 13, 2) == 1)
		return -ENOTSUP;
	if (is_taken(cpu_bits(word, 12, 3), rs1(in, word), rs2(in, word)))
		in->next = in->pc + distance;
	return 0;
}

/* ---- instructions of two bytes ---- */

/* Three bits name x8 to x15. */
static u32 short_reg(u64 word, u32 shift)
{
	return 8 + cpu_bits(word, shift, 3);
}

static u64 short_imm(u64 word)
{
	return (u64)cpu_signed_bits(word, 12, 1) << 5 | cpu_bits(word, 2, 5);
}

static u32 word_offset(u64 word)
{
	return cpu_bits(word, 10, 3) << 3 | cpu_bits(word, 6, 1) << 2 | cpu_bits(word, 5, 1) << 6;
}

static u32 double_offset(u64 word)
{
	return cpu_bits(word, 10, 3) << 3 | cpu_bits(word, 5, 2) << 6;
}

static int c_addi4spn(struct cpu_insn *in, u64 word)
{
	u32 offset = cpu_bits(word, 11, 2) << 4 | cpu_bits(word, 7, 4) << 6 | cpu_bits(word, 6, 1) << 2 |
		     cpu_bits(word, 5, 1) << 3;

	return offset ? set_x(in, short_reg(word, 2), x(in, SP) + offset) : -ENOTSUP;
}

static int c_lw(struct cpu_insn *in, u64 word)
{
	return load(in, short_reg(word, 2), x(in, short_reg(word, 7)) + word_offset(word), 2);
}

static int c_ld(struct cpu_insn *in, u64 word)
{
	return load(in, short_reg(word, 2), x(in, short_reg(word, 7)) + double_offset(word), 3);
}

static int c_sw(struct cpu_insn *in, u64 word)
{
	return cpu_insn_store(in, x(in, short_reg(word, 7)) + word_offset(word), 4,
			      x(in, short_reg(word, 2)));
}

static int c_sd(struct cpu_insn *in, u64 word)
{
	return cpu_insn_store(in, x(in, short_reg(word, 7)) + double_offset(word), 8,
			      x(in, short_reg(word, 2)));
}

static int c_addi(struct cpu_insn *in, u64 word)
{
	return set_x(in, rd(word), x(in, rd(word)) + short_imm(word));
}

static int c_addiw(struct cpu_insn *in, u64 word)
{
	return rd(word) ? set_x(in, rd(word), cpu_sign_extend(x(in, rd(word)) + short_imm(word), 32))
			: -ENOTSUP;
}

static int c_li(struct cpu_insn *in, u64 word)
{
	return set_x(in, rd(word), short_imm(word));
}

/* lui, or addi16sp when the register is sp. */
static int c_lui(struct cpu_insn *in, u64 word)
{
	u64 offset = (u64)cpu_signed_bits(word, 12, 1) << 9 | cpu_bits(word, 6, 1) << 4 |
		     cpu_bits(word, 5, 1) << 6 | cpu_bits(word, 3, 2) << 7 | cpu_bits(word, 2, 1) << 5;

	if (!short_imm(word))
		return -ENOTSUP;
	if (rd(word) == SP)
		return set_x(in, SP, x(in, SP) + offset);
	return set_x(in, rd(word), short_imm(word) << 12);
}

/* srli, srai, andi, and sub, xor, or, and, subw, addw. */
static int c_calculate(struct cpu_insn *in, u64 word)
{
	static const u8 operations[] = { 0, 4, 6, 7 };
	u32 to = short_reg(word, 7), which = cpu_bits(word, 10, 2);
	u64 a = x(in, to), b = x(in, short_reg(word, 2)), imm = short_imm(word);

	if (which == 0)
		return set_x(in, to, a >> (imm & 63));
	if (which == 1)
		return set_x(in, to, (u64)((s64)a >> (imm & 63)));
	if (which == 2)
		return set_x(in, to, a & imm);
	if (!(word >> 12 & 1))
		return set_x(in, to, calculate(operations[cpu_bits(word, 5, 2)], true, a, b));
	if (cpu_bits(word, 5, 2) > 1)
		return -ENOTSUP;
	return set_x(in, to, cpu_sign_extend(cpu_bits(word, 5, 2) ? a + b : a - b, 32));
}

static int c_j(struct cpu_insn *in, u64 word)
{
	in->next =
		in->pc + ((u64)cpu_signed_bits(word, 12, 1) << 11 | cpu_bits(word, 11, 1) << 4 |
			  cpu_bits(word, 9, 2) << 8 | cpu_bits(word, 8, 1) << 10 | cpu_bits(word, 7, 1) << 6 |
			  cpu_bits(word, 6, 1) << 7 | cpu_bits(word, 3, 3) << 1 | cpu_bits(word, 2, 1) << 5);
	return 0;
}

/* beqz, bnez */
static int c_branch(struct cpu_insn *in, u64 word)
{
	u64 distance = (u64)cpu_signed_bits(word, 12, 1) << 8 | cpu_bits(word, 10, 2) << 3 |
		       cpu_bits(word, 5, 2) << 6 | cpu_bits(word, 3, 2) << 1 | cpu_bits(word, 2, 1) << 5;

	if ((x(in, short_reg(word, 7)) == 0) != (word >> 13 & 1))
		in->next = in->pc + distance;
	return 0;
}

static int c_slli(struct cpu_insn *in, u64 word)
{
	return set_x(in, rd(word), x(in, rd(word)) << (short_imm(word) & 63));
}

static int c_lwsp(struct cpu_insn *in, u64 word)
{
	u32 offset = cpu_bits(word, 12, 1) << 5 | cpu_bits(word, 4, 3) << 2 | cpu_bits(word, 2, 2) << 6;

	return rd(word) ? load(in, rd(word), x(in, SP) + offset, 2) : -ENOTSUP;
}

static int c_ldsp(struct cpu_insn *in, u64 word)
{
	u32 offset = cpu_bits(word, 12, 1) << 5 | cpu_bits(word, 5, 2) << 3 | cpu_bits(word, 2, 3) << 6;

	return rd(word) ? load(in, rd(word), x(in, SP) + offset, 3) : -ENOTSUP;
}

static int c_swsp(struct cpu_insn *in, u64 word)
{
	u32 offset = cpu_bits(word, 9, 4) << 2 | cpu_bits(word, 7, 2) << 6;

	return cpu_insn_store(in, x(in, SP) + offset, 4, x(in, cpu_bits(word, 2, 5)));
}

static int c_sdsp(struct cpu_insn *in, u64 word)
{
	u32 offset = cpu_bits(word, 10, 3) << 3 | cpu_bits(word, 7, 3) << 6;

	return cpu_insn_store(in, x(in, SP) + offset, 8, x(in, cpu_bits(word, 2, 5)));
}

/* jr, mv; jalr, add. c.ebreak has no registers. */
static int c_registers(struct cpu_insn *in, u64 word)
{
	u32 to = rd(word), from = cpu_bits(word, 2, 5);
	bool is_second = word >> 12 & 1;
	taddr_t target = x(in, to) & ~1ULL;

	if (from)
		return set_x(in, to, x(in, from) + (is_second ? x(in, to) : 0));
	if (!to)
		return -ENOTSUP;
	if (is_second)
		set_x(in, RA, in->next);
	in->next = target;
	return 0;
}

/* The two low bits are set in instructions of four bytes only, so that both lengths share the table. */
static const struct cpu_pattern patterns[] = {
	{ 0x0000007f, 0x03, do_load },	 { 0x0000007f, 0x13, do_immediate },
	{ 0x0000007f, 0x17, do_auipc },	 { 0x0000007f, 0x1b, do_immediate_32 },
	{ 0x0000007f, 0x23, do_store },	 { 0x0000007f, 0x33, do_registers },
	{ 0x0000007f, 0x37, do_lui },	 { 0x0000007f, 0x3b, do_registers_32 },
	{ 0x0000007f, 0x63, do_branch }, { 0x0000707f, 0x67, do_jalr },
	{ 0x0000007f, 0x6f, do_jal },	 { 0xe003, 0x0000, c_addi4spn },
	{ 0xe003, 0x4000, c_lw },	 { 0xe003, 0x6000, c_ld },
	{ 0xe003, 0xc000, c_sw },	 { 0xe003, 0xe000, c_sd },
	{ 0xe003, 0x0001, c_addi },	 { 0xe003, 0x2001, c_addiw },
	{ 0xe003, 0x4001, c_li },	 { 0xe003, 0x6001, c_lui },
	{ 0xe003, 0x8001, c_calculate }, { 0xe003, 0xa001, c_j },
	{ 0xc003, 0xc001, c_branch },	 { 0xe003, 0x0002, c_slli },
	{ 0xe003, 0x4002, c_lwsp },	 { 0xe003, 0x6002, c_ldsp },
	{ 0xe003, 0x8002, c_registers }, { 0xe003, 0xc002, c_swsp },
	{ 0xe003, 0xe002, c_sdsp },	 { 0 },
};

/* Two bytes, or four if both low bits are set. Longer instructions do not exist yet. */
static size_t length_of(const u8 *code, size_t len)
{
	size_t length = len < 2 ? 0 : (code[0] & 3) != 3 ? 2 : 4;

	return length > len || (code[0] & 0x1f) == 0x1f ? 0 : length;
}

/* Branches, calls and traps: opcodes 0x60 to 0x7f; c.j, c.beqz, c.bnez, c.jr, c.jalr, c.ebreak. */
static bool may_branch(const struct cpu_insn *in, u64 word)
{
	if (in->length == 4)
		return (word & 0x60) == 0x60 && (word & 0x7f) != 0x73;
	return ((word & 3) == 1 && word >> 13 >= 5) || (word & 0xe07f) == 0x8002 || !word;
}

static const struct cpu_isa isa = {
	.length = length_of,
	.number = cpu_insn_little_endian,
	.patterns = patterns,
	.may_branch = may_branch,
	.breakpoint = { 0x02, 0x90 }, /* c.ebreak: as short as the shortest instruction */
	.breakpoint_size = 2,
};

const struct cpu cpu_riscv64 = {
	.name = "riscv64",
	.machine = EM_RISCV,
	.word_size = 8,
	.has_link = true,
	.regs_size = NR_WORDS * 8,
	.words = { [CPU_PC] = 0,
		   [CPU_SP] = SP,
		   [CPU_FP] = S0,
		   [CPU_LINK] = RA,
		   [CPU_RESULT] = A0,
		   [CPU_ARG1] = A0,
		   [CPU_ARG2] = A0 + 1,
		   [CPU_ARG3] = A0 + 2,
		   [CPU_ARG4] = A0 + 3 },
	.isa = &isa,
};

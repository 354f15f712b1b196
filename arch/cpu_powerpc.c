/* SPDX-License-Identifier: GPL-2.0-or-later */
/* 32-bit PowerPC, big endian, for breakpoints. Emulates the instructions of prologues, epilogues and branches. */
#include "arch/cpu_emulate.h"

#include <elf.h>
#include <errno.h>

/* The kernel's order: 32 registers, pc, machine state, and the special ones. */
enum { SP = 1, RESULT = 3, FP = 31, PC = 32, CTR = 35, LR = 36, XER = 37, CR = 38, NR_WORDS = 48 };

static u32 r(const struct cpu_insn *in, u32 nr)
{
	return (u32)cpu_insn_get(in, nr);
}

static int set_r(struct cpu_insn *in, u32 nr, u32 value)
{
	cpu_insn_set(in, nr, value);
	return 0;
}

/* The three register fields: destination (or source of a store), and two operands. */
static u32 rd(u64 word)
{
	return cpu_bits(word, 21, 5);
}

static u32 ra(u64 word)
{
	return cpu_bits(word, 16, 5);
}

static u32 rb(u64 word)
{
	return cpu_bits(word, 11, 5);
}

static u32 imm(u64 word)
{
	return (u32)cpu_signed_bits(word, 0, 16);
}

/* In an address, register number 0 means the value zero. */
static u32 base(const struct cpu_insn *in, u64 word)
{
	return ra(word) ? r(in, ra(word)) : 0;
}

/* Set field @field of the condition register, counted from its upper end, after a comparison. */
static void set_cr(struct cpu_insn *in, u32 field, bool is_less, bool is_greater)
{
	u32 shift = 28 - 4 * field, so = r(in, XER) >> 31;
	u32 bits = (u32)is_less << 3 | (u32)is_greater << 2 | (u32)(!is_less && !is_greater) << 1 | so;

	set_r(in, CR, (r(in, CR) & ~(15U << shift)) | bits << shift);
}

/* Put a result into @to. @is_dotted: compare it with zero too. */
static int result(struct cpu_insn *in, u32 to, u32 value, bool is_dotted)
{
	if (is_dotted)
		set_cr(in, 0, (s32)value<0, (s32)value> 0);
	return set_r(in, to, value);
}

/* addi; addis, whose constant is the upper half */
static int do_add_constant(struct cpu_insn *in, u64 word)
{
	return set_r(in, rd(word), base(in, word) + (word >> 26 & 1 ? word << 16 : imm(word)));
}

/* ori, xori, andi.; oris, whose constant is the upper half */
static int do_logical_constant(struct cpu_insn *in, u64 word)
{
	u32 opcode = word >> 26, a = r(in, rd(word)), b = opcode & 1 ? word << 16 : (u16)word;

	if (opcode >> 1 == 14)
		return result(in, ra(word), a & b, true);
	return set_r(in, ra(word), opcode >> 1 == 12 ? a | b : a ^ b);
}

/* cmpw, cmpwi, and of unsigned numbers: cmplw, cmplwi */
static int do_compare(struct cpu_insn *in, u64 word)
{
	u32 opcode = word >> 26, a = r(in, ra(word));
	bool is_signed = opcode == 11 || (opcode == 31 && !(word & 0x40));
	u32 b = opcode == 31 ? r(in, rb(word)) : is_signed ? imm(word) : (u16)word;
	bool is_less = is_signed ? (s32)a < (s32)b : a < b;

	set_cr(in, cpu_bits(word, 23, 3), is_less, !is_less && a != b);
	return 0;
}

static int do_add(struct cpu_insn *in, u64 word)
{
	return result(in, rd(word), r(in, ra(word)) + r(in, rb(word)), word & 1);
}

static int do_subf(struct cpu_insn *in, u64 word)
{
	return result(in, rd(word), r(in, rb(word)) - r(in, ra(word)), word & 1);
}

/* or, and */
static int do_logical(struct cpu_insn *in, u64 word)
{
	u32 a = r(in, rd(word)), b = r(in, rb(word));

	return result(in, ra(word), word & 0x100 ? a | b : a & b, word & 1);
}

/*
 * rlwinm: rotate left, then keep the bits from mb to me, counted from the upper end. If mb > me the range wraps
 * around.
 */
static int do_rlwinm(struct cpu_insn *in, u64 word)
{
	u32 shift = cpu_bits(word, 11, 5), mb = cpu_bits(word, 6, 5), me = cpu_bits(word, 1, 5);
	u32 value = r(in, rd(word)), from = 0xffffffffU >> mb, to = 0xffffffffU << (31 - me);

	value = shift ? value << shift | value >> (32 - shift) : value;
	return result(in, ra(word), value & (mb <= me ? from & to : from | to), word & 1);
}

/* Loads and stores, by opcode. */
struct access {
	u8 size;
	bool is_store, is_signed;
};

static int do_access(struct cpu_insn *in, u64 word)
{
	static const struct access accesses[] = {
		/* 32 lwz, 34 lbz, 36 stw, 38 stb, 40 lhz, 42 lha, 44 sth */
		{ 4, false, false }, { 1, false, false }, { 4, true, false }, { 1, true, false },
		{ 2, false, false }, { 2, false, true },  { 2, true, false }
	};
	u32 opcode = word >> 26, addr = base(in, word) + imm(word), value = r(in, rd(word));
	const struct access *a = &accesses[(opcode - 32) / 2];
	bool is_update = opcode & 1;
	u64 loaded = 0;
	int err;

	if (is_update && (!ra(word) || (!a->is_store && ra(word) == rd(word))))
		return -ENOTSUP;
	if (a->is_store)
		err = cpu_insn_store(in, addr, a->size, value);
	else
		err = a->is_signed ? cpu_insn_load_signed(in, addr, a->size, &loaded)
				   : cpu_insn_load(in, addr, a->size, &loaded);
	if (err)
		return err;
	if (is_update)
		set_r(in, ra(word), addr);
	return a->is_store ? 0 : set_r(in, rd(word), (u32)loaded);
}

/* lmw, stmw: the registers from the given one to r31, side by side in memory. */
static int do_multiple(struct cpu_insn *in, u64 word)
{
	u32 addr = base(in, word) + imm(word), first = rd(word);
	u8 bytes[32 * 4];
	int err;

	if (addr & 3 || (!(word >> 26 & 1) && ra(word) >= first))
		return -ENOTSUP;
	if (word >> 26 & 1) { /* stmw */
		for (u32 i = first; i < 32; i++)
			cpu_insn_bytes(in, bytes + (i - first) * (size_t)4, 4, r(in, i));
		return in->memory->write(in->memory->ctx, addr, bytes, (32 - first) * (size_t)4);
	}
	err = in->memory->read(in->memory->ctx, addr, bytes, (32 - first) * (size_t)4);
	for (u32 i = first; i < 32 && !err; i++)
		set_r(in, i, (u32)cpu_word(in->cpu, bytes + (i - first) * (size_t)4));
	return err;
}

/* mfspr, mtspr of lr, ctr and xer. The number of the special register has its halves swapped. */
static int do_special(struct cpu_insn *in, u64 word)
{
	u32 number = cpu_bits(word, 16, 5) | cpu_bits(word, 11, 5) << 5;
	u32 index = number == 8 ? LR : number == 9 ? CTR : number == 1 ? XER : 0;

	if (!index || (index == XER && word >> 7 & 2))
		return -ENOTSUP;
	return word & 0x100 ? set_r(in, index, r(in, rd(word))) : set_r(in, rd(word), r(in, index));
}

static int do_b(struct cpu_insn *in, u64 word)
{
	u32 distance = (u32)cpu_signed_bits(word, 2, 24) << 2;

	if (word & 1)
		set_r(in, LR, (u32)in->pc + 4);
	in->next = word & 2 ? distance : (u32)in->pc + distance;
	return 0;
}

/*
 * Is a conditional branch taken? Decrements ctr if the options ask for that. Bits of the options: ignore the
 * condition, its wanted value, ignore ctr, ctr must be zero.
 */
static bool is_taken(struct cpu_insn *in, u64 word)
{
	u32 options = rd(word), bit = r(in, CR) >> (31 - ra(word)) & 1;

	if (!(options & 4)) {
		set_r(in, CTR, r(in, CTR) - 1);
		if ((r(in, CTR) != 0) == (options >> 1 & 1))
			return false;
	}
	return options & 16 || bit == (options >> 3 & 1);
}

static int branch_to(struct cpu_insn *in, u64 word, u32 target)
{
	bool taken = is_taken(in, word);

	if (word & 1)
		set_r(in, LR, (u32)in->pc + 4);
	if (taken)
		in->next = target & ~3U;
	return 0;
}

static int do_bc(struct cpu_insn *in, u64 word)
{
	u32 distance = (u32)cpu_signed_bits(word, 2, 14) << 2;

	return branch_to(in, word, word & 2 ? distance : (u32)in->pc + distance);
}

/* bclr; bcctr, which cannot decrement ctr */
static int do_branch_register(struct cpu_insn *in, u64 word)
{
	bool is_ctr = word & 0x400;

	return is_ctr && !(rd(word) & 4) ? -ENOTSUP : branch_to(in, word, r(in, is_ctr ? CTR : LR));
}

static const struct cpu_pattern patterns[] = {
	{ 0xf8000000, 0x38000000, do_add_constant },
	{ 0xf8000000, 0x60000000, do_logical_constant },
	{ 0xfc000000, 0x68000000, do_logical_constant },
	{ 0xfc000000, 0x70000000, do_logical_constant },
	{ 0xf8600000, 0x28000000, do_compare },
	{ 0xfc6007bf, 0x7c000000, do_compare },
	{ 0xfc0007fe, 0x7c000214, do_add },
	{ 0xfc0007fe, 0x7c000050, do_subf },
	{ 0xfc0007fe, 0x7c000378, do_logical },
	{ 0xfc0007fe, 0x7c000038, do_logical },
	{ 0xfc000000, 0x54000000, do_rlwinm },
	{ 0xf8000000, 0xb8000000, do_multiple },
	{ 0xf0000000, 0x80000000, do_access },
	{ 0xf8000000, 0x90000000, do_access },
	{ 0xf8000000, 0x98000000, do_access },
	{ 0xf0000000, 0xa0000000, do_access },
	{ 0xf8000000, 0xb0000000, do_access },
	{ 0xfc0006ff, 0x7c0002a6, do_special },
	{ 0xfc000000, 0x48000000, do_b },
	{ 0xfc000000, 0x40000000, do_bc },
	{ 0xfc0003fe, 0x4c000020, do_branch_register },
	{ 0 },
};

/* Branches (16, 18, two of 19) and traps (3, and 31 with 4). */
static bool may_branch(const struct cpu_insn *in, u64 word)
{
	u32 major = cpu_bits(word, 26, 6), minor = word & 0x7fe;

	(void)in;
	if (major == 19)
		return minor == 0x20 || minor == 0x420;
	return major == 16 || major == 18 || major == 3 || (major == 31 && minor == 8);
}

static const struct cpu_isa isa = {
	.length = cpu_insn_length_4,
	.number = cpu_insn_big_endian,
	.patterns = patterns,
	.may_branch = may_branch,
	.breakpoint = { 0x7f, 0xe0, 0x00, 0x08 }, /* trap */
	.breakpoint_size = 4,
};

const struct cpu cpu_powerpc = {
	.name = "ppc",
	.machine = EM_PPC,
	.word_size = 4,
	.is_big = true,
	.has_link = true,
	.has_step = true,
	.regs_size = NR_WORDS * 4,
	.words = { [CPU_PC] = PC,
		   [CPU_SP] = SP,
		   [CPU_FP] = FP,
		   [CPU_LINK] = LR,
		   [CPU_RESULT] = RESULT,
		   [CPU_ARG1] = 3,
		   [CPU_ARG2] = 4,
		   [CPU_ARG3] = 5,
		   [CPU_ARG4] = 6 },
	.isa = &isa,
};

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* aarch64: an instruction that does at another place what it did at its own. */
#include "arch/insn_private.h"

#include <errno.h>
#include <string.h>

/* Registers that only the linker's veneers use between two functions, and that are ours at their borders. */
enum { SCRATCH = 16 };

enum { ZERO_REG = 31, BYTES = 4 };

static const u32 nop = 0xd503201f, branch = 0x14000000;

/* An instruction on its way. */
struct moved {
	u32 word;
	taddr_t from, to;
	u8 *out;
	int len; /* bytes in out */
};

static void put(struct moved *m, u32 word)
{
	for (int i = 0; i < BYTES; i++)
		m->out[m->len++] = (u8)(word >> 8 * i);
}

/* Has the signed number @distance, counted in units of 2^@shift, at most @bits bits? */
static bool fits(s64 distance, u32 shift, u32 bits)
{
	s64 limit = (s64)1 << (shift + bits - 1);

	return distance >= -limit && distance < limit;
}

/* The signed number of @bits bits from bit @shift on. */
static s64 field(u32 word, u32 shift, u32 bits)
{
	return (s64)((u64)word << (64 - shift - bits)) >> (64 - bits);
}

static u32 with_field(u32 word, u32 shift, u32 bits, s64 value)
{
	u32 mask = ((1U << bits) - 1) << shift;

	return (word & ~mask) | ((u32)value << shift & mask);
}

/* b to @target. False: too far away. */
static bool put_branch(struct moved *m, taddr_t target)
{
	s64 distance = (s64)(target - (m->to + (u64)m->len));

	if (!fits(distance, 2, 26))
		return false;
	put(m, with_field(branch, 0, 26, distance / 4));
	return true;
}

static int move_jump(struct moved *m)
{
	return put_branch(m, m->from + 4 * (u64)field(m->word, 0, 26)) ? m->len : -ERANGE;
}

/* A conditional branch. Where its own field is too small, it leads to a branch that follows it. */
static int move_conditional(struct moved *m, u32 bits)
{
	taddr_t target = m->from + 4 * (u64)field(m->word, 5, bits);
	s64 distance = (s64)(target - m->to);

	if (fits(distance, 2, bits)) {
		put(m, with_field(m->word, 5, bits, distance / 4));
		return m->len;
	}
	put(m, with_field(m->word, 5, bits, 2));
	put_branch(m, m->to + 12);
	return put_branch(m, target) ? m->len : -ERANGE;
}

static int move_19(struct moved *m)
{
	return move_conditional(m, 19);
}

static int move_14(struct moved *m)
{
	return move_conditional(m, 14);
}

static u32 address_insn(u32 reg, bool is_page, s64 number)
{
	u32 word = (is_page ? 0x90000000 : 0x10000000) | reg | ((u32)number & 3) << 29;

	return with_field(word, 5, 19, number >> 2);
}

/* adrp and perhaps add. False: more than 4 GiB away. */
static bool put_near_address(struct moved *m, u32 reg, u64 address)
{
	s64 pages = (s64)((address >> 12) - ((m->to + (u64)m->len) >> 12));
	u32 rest = address & 4095;

	if (!fits(pages, 0, 21))
		return false;
	put(m, address_insn(reg, true, pages));
	if (rest)
		put(m, 0x91000000 | rest << 10 | reg << 5 | reg);
	return true;
}

static int move_address(struct moved *m)
{
	u64 distance = (u64)field(m->word, 5, 19) * 4 + (m->word >> 29 & 3);
	u64 address = m->word >> 31 ? (m->from & ~4095ULL) + distance * 4096 : m->from + distance;
	u32 reg = m->word & 31;

	if (reg == ZERO_REG) {
		put(m, nop);
	} else if (fits((s64)(address - m->to), 0, 21)) {
		put(m, address_insn(reg, false, (s64)(address - m->to)));
	} else if (!put_near_address(m, reg, address)) {
		put(m, 0x58000000 | 2 << 5 | reg); /* ldr, from 8 bytes on */
		put_branch(m, m->to + 16);
		put(m, (u32)address);
		put(m, (u32)(address >> 32));
	}
	return m->len;
}

/* Loads from where SCRATCH points to, by the size in the literal's instruction; then of a vector register. */
static const u32 loads[2][3] = { { 0xb9400000, 0xf9400000, 0xb9800000 },
				 { 0xbd400000, 0xfd400000, 0x3dc00000 } };

static int move_literal(struct moved *m)
{
	u64 address = m->from + 4 * (u64)field(m->word, 5, 19);
	s64 distance = (s64)(address - m->to);
	u32 size = m->word >> 30, is_vector = m->word >> 26 & 1;

	if (size == 3 && is_vector)
		return -EINVAL;
	if (fits(distance, 2, 19))
		put(m, with_field(m->word, 5, 19, distance / 4));
	else if (size == 3)
		put(m, nop); /* prfm is a hint */
	else if (put_near_address(m, SCRATCH, address))
		put(m, loads[is_vector][size] | SCRATCH << 5 | (m->word & 31));
	else
		return -ERANGE;
	return m->len;
}

static int copy(struct moved *m)
{
	put(m, m->word);
	return m->len;
}

static int refuse(struct moved *m)
{
	(void)m;
	return -ENOTSUP;
}

/* The first match counts. */
static const struct {
	u32 mask, value;
	int (*move)(struct moved *m);
} rows[] = {
	{ 0xfc000000, 0x14000000, move_jump },
	{ 0xff000000, 0x54000000, move_19 }, /* b.cond, bc.cond */
	{ 0x7e000000, 0x34000000, move_19 }, /* cbz, cbnz */
	{ 0x7e000000, 0x36000000, move_14 }, /* tbz, tbnz */
	{ 0xfffffc1f, 0xd61f0000, copy },    /* br */
	{ 0xfffffc1f, 0xd65f0000, copy },    /* ret */
	{ 0xfefff800, 0xd61f0800, copy },    /* braa, braaz, ... */
	{ 0xfffffbff, 0xd65f0bff, copy },    /* retaa, retab */
	{ 0xffe0001f, 0xd4000001, copy },    /* svc */
	{ 0xffffffff, 0xd50324ff, refuse },  /* pacm: the next instruction signs with its own address */
	{ 0xffc00000, 0xd5000000, copy },    /* hints, barriers, mrs, msr */
	/* Calls, whose return address would show the place; traps; and what is not known among those that branch. */
	{ 0x1c000000, 0x14000000, refuse },
	{ 0xffff0000, 0x00000000, refuse }, /* udf */
	/* Signatures that depend on an address of code: paciasppc, autiasppc, ... */
	{ 0xffff8000, 0xdac18000, refuse },
	{ 0xff800000, 0xf3800000, refuse },
	{ 0x1f000000, 0x10000000, move_address },
	{ 0x3b000000, 0x18000000, move_literal },
	{ 0, 0, copy },
};

int insn_aarch64_move(u16 elf_machine, taddr_t pc, const u8 *code, size_t len, taddr_t to, u8 *out)
{
	struct moved m = { .from = pc, .to = to, .out = out };
	size_t i = 0;

	(void)elf_machine;
	if (len < BYTES || pc % BYTES || to % BYTES)
		return -EINVAL;
	m.word = code[0] | code[1] << 8 | code[2] << 16 | (u32)code[3] << 24;
	while ((m.word & rows[i].mask) != rows[i].value)
		i++;
	return rows[i].move(&m);
}

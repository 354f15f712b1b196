/* SPDX-License-Identifier: GPL-2.0-or-later */
/* aarch64 for breakpoints. Common integer instructions are emulated; the CPU steps the others. */
#include <elf.h>
#include <errno.h>

#include "arch/cpu_arm.h"

/* The kernel's order: x0 to x30, sp, pc, status. In instructions, register 31 is sp or zero. */
enum { FP = 29, LR, SP, PC, PSTATE, NR_WORDS };

static u64 x(const struct cpu_insn *in, u32 nr)
{
	return nr == SP ? 0 : cpu_insn_get(in, nr);
}

/* Set a register of 64 bits, or the lower half and clear the upper half. */
static int set_x(struct cpu_insn *in, u32 nr, u64 value, bool is_64)
{
	if (nr != SP)
		cpu_insn_set(in, nr, is_64 ? value : (u32)value);
	return 0;
}

static u32 rd(u64 word)
{
	return cpu_bits(word, 0, 5);
}

static u32 rn(u64 word)
{
	return cpu_bits(word, 5, 5);
}

static u32 rm(u64 word)
{
	return cpu_bits(word, 16, 5);
}

static bool holds(const struct cpu_insn *in, u32 cond)
{
	return arm_flags_hold((u32)cpu_insn_get(in, PSTATE), cond);
}

/* ---- branches ---- */

static int do_b(struct cpu_insn *in, u64 word)
{
	if (word >> 31)
		cpu_insn_set(in, LR, in->pc + 4);
	in->next = in->pc + 4 * (u64)cpu_signed_bits(word, 0, 26);
	return 0;
}

static int branch_if(struct cpu_insn *in, bool is_taken, s64 distance)
{
	if (is_taken)
		in->next = in->pc + 4 * (u64)distance;
	return 0;
}

static int do_b_cond(struct cpu_insn *in, u64 word)
{
	return branch_if(in, holds(in, cpu_bits(word, 0, 4)), cpu_signed_bits(word, 5, 19));
}

static int do_cbz(struct cpu_insn *in, u64 word)
{
	u64 value = word >> 31 ? x(in, rd(word)) : (u32)x(in, rd(word));

	return branch_if(in, (value != 0) == (word >> 24 & 1), cpu_signed_bits(word, 5, 19));
}

static int do_tbz(struct cpu_insn *in, u64 word)
{
	u32 bit = cpu_bits(word, 31, 1) << 5 | cpu_bits(word, 19, 5);

	return branch_if(in, (x(in, rd(word)) >> bit & 1) == (word >> 24 & 1), cpu_signed_bits(word, 5, 14));
}

/* br, blr, ret */
static int do_br(struct cpu_insn *in, u64 word)
{
	in->next = x(in, rn(word));
	if (cpu_bits(word, 21, 2) == 1)
		cpu_insn_set(in, LR, in->pc + 4);
	return 0;
}

/* ---- numbers ---- */

static int do_adr(struct cpu_insn *in, u64 word)
{
	u64 distance = (u64)cpu_signed_bits(word, 5, 19) * 4 + cpu_bits(word, 29, 2);

	return set_x(in, rd(word), word >> 31 ? (in->pc & ~4095ULL) + distance * 4096 : in->pc + distance,
		     true);
}

/* Set the condition flags. */
static void set_flags(struct cpu_insn *in, u64 flags)
{
	cpu_insn_set(in, PSTATE, (cpu_insn_get(in, PSTATE) & ~(u64)(ARM_N | ARM_Z | ARM_C | ARM_V)) | flags);
}

static u64 result_flags(u64 value, bool is_64)
{
	value = is_64 ? value : (u32)value;
	return (value >> (is_64 ? 63 : 31) & 1 ? ARM_N : 0) | (value ? 0 : ARM_Z);
}

/* @a + @b, or @a - @b. @sets: set the flags too. */
static u64 add(struct cpu_insn *in, u64 a, u64 b, bool is_sub, bool is_64, bool sets)
{
	u64 sum, top = is_64 ? 1ULL << 63 : 1ULL << 31, flags;
	bool carry;

	b = is_sub ? ~b : b;
	if (!is_64) {
		a = (u32)a;
		b = (u32)b;
	}
	sum = a + b + is_sub;
	carry = is_64 ? sum < a || (is_sub && sum == a) : sum >> 32;
	if (!sets)
		return sum;
	flags = result_flags(sum, is_64) | (carry ? ARM_C : 0);
	set_flags(in, flags | (~(a ^ b) & (a ^ sum) & top ? ARM_V : 0));
	return sum;
}

/* add, sub with twelve bits: register 31 is sp, except as the result of an instruction that sets flags. */
static int do_add_imm(struct cpu_insn *in, u64 word)
{
	bool is_64 = word >> 31, sets = word >> 29 & 1;
	u64 b = (u64)cpu_bits(word, 10, 12) << (word >> 22 & 1 ? 12 : 0);
	u64 r = add(in, cpu_insn_get(in, rn(word)), b, word >> 30 & 1, is_64, sets);

	if (sets)
		return set_x(in, rd(word), r, is_64);
	cpu_insn_set(in, rd(word), is_64 ? r : (u32)r);
	return 0;
}

static u64 shifted(const struct cpu_insn *in, u64 word, bool is_64)
{
	u32 by = cpu_bits(word, 10, 6), type = cpu_bits(word, 22, 2);
	u64 value = x(in, rm(word));

	if (!is_64)
		value = (u32)value;
	switch (type) {
	case 0:
		return value << by;
	case 1:
		return value >> by;
	case 2:
		return is_64 ? (u64)((s64)value >> by) : (u32)((s32)value >> by);
	default:
		return by ? value >> by | value << ((is_64 ? 64 : 32) - by) : value;
	}
}

/* Shifts of 32-bit registers by 32 and more do not exist. */
static bool is_shift_bad(u64 word)
{
	return !(word >> 31) && cpu_bits(word, 15, 1);
}

static int do_add_reg(struct cpu_insn *in, u64 word)
{
	bool is_64 = word >> 31;

	if (is_shift_bad(word) || cpu_bits(word, 22, 2) == 3)
		return -ENOTSUP;
	return set_x(
		in, rd(word),
		add(in, x(in, rn(word)), shifted(in, word, is_64), word >> 30 & 1, is_64, word >> 29 & 1),
		is_64);
}

/* and, orr, eor, ands */
static int logical(struct cpu_insn *in, u64 word, u64 b, bool is_sp)
{
	bool is_64 = word >> 31;
	u32 op = cpu_bits(word, 29, 2);
	u64 a = x(in, rn(word)), r = op == 1 ? a | b : op == 2 ? a ^ b : a & b;

	if (op == 3)
		set_flags(in, result_flags(r, is_64));
	if (!is_sp || op == 3)
		return set_x(in, rd(word), r, is_64);
	cpu_insn_set(in, rd(word), is_64 ? r : (u32)r);
	return 0;
}

static int do_logical_reg(struct cpu_insn *in, u64 word)
{
	u64 b = shifted(in, word, word >> 31);

	return is_shift_bad(word) ? -ENOTSUP : logical(in, word, word >> 21 & 1 ? ~b : b, false);
}

/* A constant: a run of ones, rotated and repeated. */
static int do_logical_imm(struct cpu_insn *in, u64 word)
{
	u32 s = cpu_bits(word, 10, 6), by = cpu_bits(word, 16, 6),
	    key = cpu_bits(word, 22, 1) << 6 | (~s & 63);
	u32 size = key ? 1U << (31 - __builtin_clz(key)) : 0, ones;
	u64 mask, pattern;

	if (size < 2 || (!(word >> 31) && size > 32))
		return -ENOTSUP;
	ones = (s & (size - 1)) + 1;
	by &= size - 1;
	if (ones == size)
		return -ENOTSUP;
	mask = size == 64 ? ~0ULL : (1ULL << size) - 1;
	pattern = (1ULL << ones) - 1;
	if (by)
		pattern = (pattern >> by | pattern << (size - by)) & mask;
	for (; size < 64; size *= 2)
		pattern |= pattern << size;
	return logical(in, word, pattern, true);
}

/* movn, movz, movk */
static int do_mov(struct cpu_insn *in, u64 word)
{
	u32 shift = 16 * cpu_bits(word, 21, 2), which = cpu_bits(word, 29, 2);
	u64 value = (u64)cpu_bits(word, 5, 16) << shift;

	if (which == 1 || (!(word >> 31) && shift > 16))
		return -ENOTSUP;
	if (which == 3)
		value |= x(in, rd(word)) & ~(0xffffULL << shift);
	return set_x(in, rd(word), which ? value : ~value, word >> 31);
}

/* ubfm, sbfm: lsl, lsr, asr, uxtw, sxtw, ... */
static int do_bitfield(struct cpu_insn *in, u64 word)
{
	bool is_64 = word >> 31, is_signed = !(word >> 29 & 3);
	u32 from = cpu_bits(word, 16, 6), last = cpu_bits(word, 10, 6), size = is_64 ? 64 : 32;
	u64 value = x(in, rn(word));

	if (cpu_bits(word, 22, 1) != is_64 || from >= size || last >= size)
		return -ENOTSUP;
	if (last >= from)
		value = is_signed ? (u64)cpu_signed_bits(value, from, last - from + 1)
				  : value << (63 - last) >> (63 - last + from);
	else
		value = (is_signed ? (u64)cpu_signed_bits(value, 0, last + 1)
				   : value << (63 - last) >> (63 - last))
			<< (size - from);
	return set_x(in, rd(word), value, is_64);
}

/* csel, csinc, csinv, csneg */
static int do_csel(struct cpu_insn *in, u64 word)
{
	u64 other = x(in, rm(word));

	if (word >> 30 & 1)
		other = ~other;
	if (word >> 10 & 1)
		other++;
	return set_x(in, rd(word), holds(in, cpu_bits(word, 12, 4)) ? x(in, rn(word)) : other, word >> 31);
}

/* ---- memory ---- */

/* The address of an access. @is_back: the base register becomes the sum. @is_pre: the sum is the address. */
static u64 address(struct cpu_insn *in, u64 word, s64 offset, bool is_back, bool is_pre)
{
	u64 base = cpu_insn_get(in, rn(word)), moved = base + (u64)offset;

	if (is_back)
		cpu_insn_set(in, rn(word), moved);
	return is_pre ? moved : base;
}

/* ldp, stp. Bits 23 and 24: 1 writes back after the access, 3 before it, others do not write back. */
static int do_pair(struct cpu_insn *in, u64 word)
{
	u32 mode = cpu_bits(word, 23, 2), second = cpu_bits(word, 10, 5), size = word >> 31 ? 8 : 4;
	bool is_load = word >> 22 & 1, is_back = mode & 1;
	u64 a = x(in, rd(word)), b = x(in, second), addr;
	u8 bytes[16];
	int err;

	if (cpu_bits(word, 30, 1) || (is_load && rd(word) == second))
		return -ENOTSUP; /* ldpsw */
	if (is_back && rn(word) != SP && (rn(word) == rd(word) || rn(word) == second))
		return -ENOTSUP;
	addr = address(in, word, cpu_signed_bits(word, 15, 7) * (s64)size, is_back, mode != 1);
	if (is_load) {
		err = cpu_insn_load(in, addr, size, &a);
		err = err ? err : cpu_insn_load(in, addr + size, size, &b);
		return err ? err : set_x(in, rd(word), a, true) | set_x(in, second, b, true);
	}
	cpu_insn_bytes(in, bytes, size, a);
	cpu_insn_bytes(in, bytes + size, size, b);
	return in->memory->write(in->memory->ctx, addr, bytes, 2 * (size_t)size);
}

/* Load or store one register at @addr. Bits 22 and 23: store, load, load signed to 64 or to 32 bits. */
static int access_memory(struct cpu_insn *in, u64 word, u64 addr)
{
	u32 size = 1U << (word >> 30), which = cpu_bits(word, 22, 2);
	u64 value = 0;
	int err;

	if (which == 0)
		return cpu_insn_store(in, addr, size, x(in, rd(word)));
	if (size == 8 && which > 1)
		return -ENOTSUP; /* prfm */
	err = which == 1 ? cpu_insn_load(in, addr, size, &value)
			 : cpu_insn_load_signed(in, addr, size, &value);
	return err ? err : set_x(in, rd(word), value, which != 3);
}

static int do_access(struct cpu_insn *in, u64 word)
{
	return access_memory(in, word,
			     address(in, word, (s64)cpu_bits(word, 10, 12) << (word >> 30), false, true));
}

/* Offsets of nine bits. Bits 10 and 11: 0 unscaled, 1 write-back after the access, 3 before it. */
static int do_access_moving(struct cpu_insn *in, u64 word)
{
	u32 mode = cpu_bits(word, 10, 2);

	if (mode == 2 || (mode && rn(word) != SP && rn(word) == rd(word)))
		return -ENOTSUP;
	return access_memory(in, word, address(in, word, cpu_signed_bits(word, 12, 9), mode, mode != 1));
}

/* A register, extended (2 uxtw, 3 plain, 6 sxtw) and scaled */
static int do_access_reg(struct cpu_insn *in, u64 word)
{
	u32 extend = cpu_bits(word, 13, 3), scale = cpu_bits(word, 12, 1) ? word >> 30 : 0;
	u64 index = x(in, rm(word));

	if (extend == 2)
		index = (u32)index;
	else if (extend == 6)
		index = cpu_sign_extend(index, 32);
	else if (extend != 3 && extend != 7)
		return -ENOTSUP;
	return access_memory(in, word, address(in, word, (s64)(index << scale), false, true));
}

static const struct cpu_pattern patterns[] = {
	{ 0x7c000000, 0x14000000, do_b },
	{ 0xff000010, 0x54000000, do_b_cond },
	{ 0x7e000000, 0x34000000, do_cbz },
	{ 0x7e000000, 0x36000000, do_tbz },
	{ 0xfffffc1f, 0xd61f0000, do_br },
	{ 0xfffffc1f, 0xd63f0000, do_br },
	{ 0xfffffc1f, 0xd65f0000, do_br },
	{ 0xffffffff, 0xd503201f, cpu_insn_nothing },
	{ 0xffffff3f, 0xd503241f, cpu_insn_nothing },
	{ 0x1f000000, 0x10000000, do_adr },
	{ 0x1f800000, 0x11000000, do_add_imm },
	{ 0x1f800000, 0x12000000, do_logical_imm },
	{ 0x1f800000, 0x12800000, do_mov },
	{ 0x3f800000, 0x13000000, do_bitfield },
	{ 0x1f000000, 0x0a000000, do_logical_reg },
	{ 0x1f200000, 0x0b000000, do_add_reg },
	{ 0x3fe00800, 0x1a800000, do_csel },
	{ 0x3e000000, 0x28000000, do_pair },
	{ 0x3f000000, 0x39000000, do_access },
	{ 0x3f200000, 0x38000000, do_access_moving },
	{ 0x3f200c00, 0x38200800, do_access_reg },
	{ 0 },
};

/* Branches and exceptions form one group, but svc and the system instructions of the group do not branch. */
static bool may_branch(const struct cpu_insn *in, u64 word)
{
	(void)in;
	if (!(word >> 16))
		return true; /* udf */
	return cpu_bits(word, 26, 3) == 5 && word >> 22 != 0x354 && (word & 0xffe0001f) != 0xd4000001;
}

static const struct cpu_isa isa = {
	.length = cpu_insn_length_4,
	.number = cpu_insn_little_endian,
	.patterns = patterns,
	.may_branch = may_branch,
	.breakpoint = { 0x00, 0x00, 0x20, 0xd4 }, /* brk #0 */
	.breakpoint_size = 4,
};

const struct cpu cpu_aarch64 = {
	.name = "aarch64",
	.machine = EM_AARCH64,
	.word_size = 8,
	.has_link = true,
	.has_step = true,
	.regs_size = NR_WORDS * 8,
	.code_mask = 0xffffffffffffULL,
	.words = { [CPU_PC] = PC,
		   [CPU_SP] = SP,
		   [CPU_FP] = FP,
		   [CPU_LINK] = LR,
		   [CPU_RESULT] = 0,
		   [CPU_ARG1] = 0,
		   [CPU_ARG2] = 1,
		   [CPU_ARG3] = 2,
		   [CPU_ARG4] = 3 },
	.isa = &isa,
};

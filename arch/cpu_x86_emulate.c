/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Carries out the x86 instructions that breakpoints replace, on a copy of the registers. */
#include "arch/cpu_x86.h"

#include <errno.h>
#include <string.h>

/* Words, in the kernel's order, of the registers that instructions number, and of those without a number. */
enum { REG_SP = 4, REG_IP = 16, REG_FLAGS, NR_REGS };

static const u8 words_64[NR_REGS] = { 10, 11, 12, 5, 19, 4, 13, 14, 9, 8, 7, 6, 3, 2, 1, 0, 16, 18 };
static const u8 words_32[NR_REGS] = { 6, 1, 2, 0, 15, 5, 3, 4, 0, 0, 0, 0, 0, 0, 0, 0, 12, 14 };

enum { FLAG_C = 1, FLAG_P = 4, FLAG_A = 16, FLAG_Z = 64, FLAG_S = 128, FLAG_O = 2048 };
enum { ARITHMETIC = FLAG_C | FLAG_P | FLAG_A | FLAG_Z | FLAG_S | FLAG_O };

/* The eight operations that opcodes number. */
enum alu { ALU_ADD, ALU_OR, ALU_ADC, ALU_SBB, ALU_AND, ALU_SUB, ALU_XOR, ALU_CMP };

/* One instruction under way. */
struct x86_insn {
	struct cpu_regs regs; /* as they will be */
	const struct cpu_memory *memory;
	const u8 *code;
	size_t len, at; /* bytes, and how many are decoded */
	bool is_64;
	u8 rex;
	u8 size; /* of operands, bytes */
	/* The ModRM byte's: */
	u8 reg;	     /* its register field */
	bool is_mem; /* its other operand is memory at @address, else register @rm */
	u8 rm;
	u64 address;
};

static u64 get_reg(const struct x86_insn *in, u8 nr)
{
	u64 value = 0;

	if (in->is_64)
		memcpy(&value, in->regs.bytes + words_64[nr] * 8, 8);
	else
		memcpy(&value, in->regs.bytes + words_32[nr] * 4, 4);
	return value;
}

/* Set the whole register. 32-bit results clear the upper half. */
static void set_reg(struct x86_insn *in, u8 nr, u64 value)
{
	if (in->is_64)
		memcpy(in->regs.bytes + words_64[nr] * 8, &value, 8);
	else
		memcpy(in->regs.bytes + words_32[nr] * 4, &value, 4);
}

static u64 mask_of(u8 size)
{
	return size == 8 ? ~0ULL : (1ULL << 8 * size) - 1;
}

static u64 cut(u64 value, u8 size)
{
	return value & mask_of(size);
}

static u64 sign_extend(u64 value, u8 size)
{
	u8 shift = 64 - 8 * size;

	return (u64)((s64)(value << shift) >> shift);
}

/* The next @size bytes of the instruction as a signed number. False if the instruction is cut off. */
static bool take_imm(struct x86_insn *in, u8 size, u64 *value)
{
	if (in->at + size > in->len)
		return false;
	*value = 0;
	for (u8 i = 0; i < size; i++)
		*value |= (u64)in->code[in->at + i] << 8 * i;
	*value = sign_extend(*value, size);
	in->at += size;
	return true;
}

static u8 word_size(const struct x86_insn *in)
{
	return in->is_64 ? 8 : 4;
}

/* Base, index and scale. */
static bool take_sib(struct x86_insn *in, u8 mod)
{
	u8 sib, base, index;
	u64 disp;

	if (in->at >= in->len)
		return false;
	sib = in->code[in->at++];
	base = (sib & 7) | (in->rex & 1 ? 8 : 0);
	index = (sib >> 3 & 7) | (in->rex & 2 ? 8 : 0);
	in->address = 0;
	if ((sib & 7) == 5 && !mod) {
		if (!take_imm(in, 4, &disp))
			return false;
		in->address = disp;
	} else {
		in->address = get_reg(in, base);
	}
	if (index != REG_SP)
		in->address += get_reg(in, index) << (sib >> 6);
	return true;
}

/*
 * Decode the ModRM byte, and the SIB byte and displacement that belong to it. @imm_size: bytes of the instruction
 * that follow, for addresses relative to pc.
 */
static bool take_modrm(struct x86_insn *in, u8 imm_size)
{
	u8 modrm, mod, rm;
	u64 disp = 0;

	if (in->at >= in->len)
		return false;
	modrm = in->code[in->at++];
	mod = modrm >> 6;
	rm = modrm & 7;
	in->reg = (modrm >> 3 & 7) | (in->rex & 4 ? 8 : 0);
	in->rm = rm | (in->rex & 1 ? 8 : 0);
	in->is_mem = mod != 3;
	if (!in->is_mem)
		return true;
	if (rm == 4) {
		if (!take_sib(in, mod))
			return false;
	} else if (rm == 5 && !mod) {
		if (!take_imm(in, 4, &disp))
			return false;
		in->address = in->is_64 ? get_reg(in, REG_IP) + in->at + imm_size : 0;
	} else {
		in->address = get_reg(in, in->rm);
	}
	if (mod && !take_imm(in, mod == 1 ? 1 : 4, &disp))
		return false;
	in->address = cut(in->address + disp, word_size(in));
	return true;
}

static int load(const struct x86_insn *in, u64 address, u8 size, u64 *value)
{
	*value = 0;
	return in->memory->read(in->memory->ctx, cut(address, word_size(in)), value, size);
}

static int store(const struct x86_insn *in, u64 address, u8 size, u64 value)
{
	return in->memory->write(in->memory->ctx, cut(address, word_size(in)), &value, size);
}

/* In byte instructions without a REX byte, AH, CH, DH and BH have the numbers of SP to DI. */
static bool is_high_byte(const struct x86_insn *in, u8 reg)
{
	return in->size == 1 && !in->rex && reg >= REG_SP && reg < 8;
}

static int get_operand(const struct x86_insn *in, u64 *value)
{
	if (in->is_mem)
		return load(in, in->address, in->size, value);
	if (is_high_byte(in, in->rm))
		return -ENOTSUP;
	*value = cut(get_reg(in, in->rm), in->size);
	return 0;
}

/* A write to less than 32 bits keeps the other bits of the register. */
static int put_reg(struct x86_insn *in, u8 reg, u64 value)
{
	if (is_high_byte(in, reg))
		return -ENOTSUP;
	if (in->size < 4)
		value |= get_reg(in, reg) & ~mask_of(in->size);
	set_reg(in, reg, value);
	return 0;
}

static int put_operand(struct x86_insn *in, u64 value)
{
	return in->is_mem ? store(in, in->address, in->size, value) : put_reg(in, in->rm, value);
}

static int push(struct x86_insn *in, u64 value)
{
	u64 sp = get_reg(in, REG_SP) - word_size(in);

	set_reg(in, REG_SP, sp);
	return store(in, sp, word_size(in), value);
}

static int pop(struct x86_insn *in, u64 *value)
{
	u64 sp = get_reg(in, REG_SP);

	set_reg(in, REG_SP, sp + word_size(in));
	return load(in, sp, word_size(in), value);
}

static void set_flags(struct x86_insn *in, u64 flags)
{
	set_reg(in, REG_FLAGS, (get_reg(in, REG_FLAGS) & ~(u64)ARITHMETIC) | flags);
}

/* The zero, sign and parity flags of a result. */
static u64 result_flags(u64 value, u8 size)
{
	u64 flags = __builtin_parity((u8)value) ? 0 : FLAG_P;

	if (!cut(value, size))
		flags |= FLAG_Z;
	if (value >> (8 * size - 1) & 1)
		flags |= FLAG_S;
	return flags;
}

/* Apply @op to @a and @b, and set the flags. Operations with carry are not needed. */
static u64 calculate(struct x86_insn *in, enum alu op, u64 a, u64 b)
{
	u64 top = 1ULL << (8 * in->size - 1), r, flags = 0;

	a = cut(a, in->size);
	b = cut(b, in->size);
	switch (op) {
	case ALU_ADD:
		r = cut(a + b, in->size);
		flags |= r < a ? FLAG_C : 0;
		flags |= ~(a ^ b) & (a ^ r) & top ? FLAG_O : 0;
		flags |= (a ^ b ^ r) & FLAG_A;
		break;
	case ALU_SUB:
	case ALU_CMP:
		r = cut(a - b, in->size);
		flags |= a < b ? FLAG_C : 0;
		flags |= (a ^ b) & (a ^ r) & top ? FLAG_O : 0;
		flags |= (a ^ b ^ r) & FLAG_A;
		break;
	case ALU_OR:
		r = a | b;
		break;
	case ALU_AND:
		r = a & b;
		break;
	default:
		r = a ^ b;
		break;
	}
	set_flags(in, flags | result_flags(r, in->size));
	return r;
}

static bool is_calculated(enum alu op)
{
	return op != ALU_ADC && op != ALU_SBB;
}

/* add, or, and, sub, xor, cmp with a register; bit 1 of the opcode: the register is the destination. */
static int do_alu(struct x86_insn *in, u8 opcode)
{
	enum alu op = opcode >> 3;
	u64 a, b, r;
	int err;

	if (!is_calculated(op) || !take_modrm(in, 0) || is_high_byte(in, in->reg))
		return -ENOTSUP;
	err = get_operand(in, &a);
	if (err)
		return err;
	b = get_reg(in, in->reg);
	r = opcode & 2 ? calculate(in, op, b, a) : calculate(in, op, a, b);
	if (op == ALU_CMP)
		return 0;
	return opcode & 2 ? put_reg(in, in->reg, r) : put_operand(in, r);
}

/* Like do_alu(), with a constant as the second operand. */
static int do_alu_imm(struct x86_insn *in, u8 imm_size)
{
	enum alu op;
	u64 a, b, r;
	int err;

	if (!take_modrm(in, imm_size) || !take_imm(in, imm_size, &b))
		return -ENOTSUP;
	op = in->reg & 7;
	if (!is_calculated(op))
		return -ENOTSUP;
	err = get_operand(in, &a);
	if (err)
		return err;
	r = calculate(in, op, a, b);
	return op == ALU_CMP ? 0 : put_operand(in, r);
}

static int do_test(struct x86_insn *in)
{
	u64 a;
	int err;

	if (!take_modrm(in, 0) || is_high_byte(in, in->reg))
		return -ENOTSUP;
	err = get_operand(in, &a);
	if (!err)
		calculate(in, ALU_AND, a, get_reg(in, in->reg));
	return err;
}

/* mov between registers and memory, lea; constants into either. */
static int do_move(struct x86_insn *in, u8 opcode)
{
	u64 value = 0;
	int err;

	if (!take_modrm(in, opcode == 0xc7 ? 4 : 0) || is_high_byte(in, in->reg))
		return -ENOTSUP;
	switch (opcode) {
	case 0x89:
		return put_operand(in, cut(get_reg(in, in->reg), in->size));
	case 0x8b:
		err = get_operand(in, &value);
		return err ? err : put_reg(in, in->reg, value);
	case 0x8d:
		if (!in->is_mem)
			return -ENOTSUP;
		return put_reg(in, in->reg, cut(in->address, in->size));
	default:
		if (in->reg & 7 || !take_imm(in, 4, &value))
			return -ENOTSUP;
		return put_operand(in, cut(value, in->size));
	}
}

/* Is the condition that opcodes number @cc true? */
static bool holds(const struct x86_insn *in, u8 cc)
{
	u64 flags = get_reg(in, REG_FLAGS);
	bool is_less = !(flags & FLAG_S) != !(flags & FLAG_O);
	const bool is_true[] = {
		flags & FLAG_O, flags & FLAG_C, flags & FLAG_Z, flags & (FLAG_C | FLAG_Z),
		flags & FLAG_S, flags & FLAG_P, is_less,	is_less || flags & FLAG_Z,
	};

	return is_true[cc >> 1] != (cc & 1);
}

/* Continue at @address instead of behind the instruction. */
static int go_to(struct x86_insn *in, u64 address)
{
	set_reg(in, REG_IP, cut(address, word_size(in)));
	in->at = 0;
	return 0;
}

static u64 behind(const struct x86_insn *in)
{
	return get_reg(in, REG_IP) + in->at;
}

static int do_branch(struct x86_insn *in, u8 size, bool is_taken)
{
	u64 distance;

	if (!take_imm(in, size, &distance))
		return -ENOTSUP;
	return is_taken ? go_to(in, behind(in) + distance) : 0;
}

static int do_call(struct x86_insn *in)
{
	u64 distance, ret;
	int err;

	if (!take_imm(in, 4, &distance))
		return -ENOTSUP;
	ret = behind(in);
	err = push(in, ret);
	return err ? err : go_to(in, ret + distance);
}

static int do_return(struct x86_insn *in, bool has_imm)
{
	u64 bytes = 0, address;
	int err;

	if (has_imm && !take_imm(in, 2, &bytes))
		return -ENOTSUP;
	err = pop(in, &address);
	if (err)
		return err;
	set_reg(in, REG_SP, get_reg(in, REG_SP) + (u16)bytes);
	return go_to(in, address);
}

/* Indirect jumps and calls, push of memory. */
static int do_group_ff(struct x86_insn *in)
{
	u64 value, ret;
	int err;

	in->size = word_size(in);
	if (!take_modrm(in, 0))
		return -ENOTSUP;
	ret = behind(in);
	err = (in->reg & 7) == 2 || (in->reg & 7) == 4 || (in->reg & 7) == 6 ? get_operand(in, &value)
									     : -ENOTSUP;
	if (err)
		return err;
	if ((in->reg & 7) == 4)
		return go_to(in, value);
	err = push(in, (in->reg & 7) == 6 ? value : ret);
	return err || (in->reg & 7) == 6 ? err : go_to(in, value);
}

static int do_pop(struct x86_insn *in, u8 reg)
{
	u64 value;
	int err = pop(in, &value);

	if (!err)
		set_reg(in, reg, value);
	return err;
}

/* Opcodes of two bytes: nops, endbr, long branches, movzx. */
static int do_two_bytes(struct x86_insn *in, bool is_repeat)
{
	u8 opcode = in->at < in->len ? in->code[in->at++] : 0;
	u8 size = in->size;
	u64 value;
	int err;

	if (opcode == 0x1e && is_repeat) /* endbr64, endbr32; rdssp uses other registers */
		return in->at < in->len && (in->code[in->at] | 1) == 0xfb ? (in->at++, 0) : -ENOTSUP;
	if (opcode == 0x1f)
		return take_modrm(in, 0) ? 0 : -ENOTSUP;
	if (opcode >> 4 == 8)
		return do_branch(in, 4, holds(in, opcode & 15));
	if (opcode != 0xb6 && opcode != 0xb7)
		return -ENOTSUP;
	in->size = opcode == 0xb6 ? 1 : 2;
	if (!take_modrm(in, 0))
		return -ENOTSUP;
	err = get_operand(in, &value);
	in->size = size;
	return err ? err : put_reg(in, in->reg, value);
}

static int do_opcode(struct x86_insn *in, u8 opcode)
{
	u8 high = in->rex & 1 ? 8 : 0;
	u64 value;

	if (opcode < 0x40 && (opcode & 7) < 4 && ((opcode & 1) || (in->size = 1)))
		return do_alu(in, opcode);
	if (opcode >> 3 == 0xa)
		return push(in, get_reg(in, (opcode & 7) | high));
	if (opcode >> 3 == 0xb)
		return do_pop(in, (opcode & 7) | high);
	if (opcode >> 4 == 7)
		return do_branch(in, 1, holds(in, opcode & 15));
	if (opcode >> 3 == 0x17 && in->size == 4)
		return take_imm(in, 4, &value) ? put_reg(in, (opcode & 7) | high, cut(value, 4)) : -ENOTSUP;
	switch (opcode) {
	case 0x84:
		in->size = 1;
		return do_test(in);
	case 0x85:
		return do_test(in);
	case 0x80:
		in->size = 1;
		return do_alu_imm(in, 1);
	case 0x81:
		return do_alu_imm(in, 4);
	case 0x83:
		return do_alu_imm(in, 1);
	case 0x89:
	case 0x8b:
	case 0x8d:
	case 0xc7:
		return do_move(in, opcode);
	case 0x90:
		return high ? -ENOTSUP : 0;
	case 0xc2:
	case 0xc3:
		return do_return(in, opcode == 0xc2);
	case 0xe8:
		return do_call(in);
	case 0xe9:
		return do_branch(in, 4, true);
	case 0xeb:
		return do_branch(in, 1, true);
	case 0xff:
		return do_group_ff(in);
	default:
		return -ENOTSUP;
	}
}

static int decode(struct x86_insn *in)
{
	bool is_short = false, is_repeat = false;
	u8 opcode = 0;
	int err;

	while (in->at < in->len) {
		opcode = in->code[in->at++];
		if (opcode == 0x66 || opcode == 0x2e)
			is_short = true;
		else if (opcode == 0xf3 || opcode == 0xf2 || opcode == 0x3e)
			is_repeat = true;
		else
			break;
	}
	if (in->is_64 && opcode >> 4 == 4 && in->at < in->len) {
		in->rex = opcode;
		opcode = in->code[in->at++];
	}
	in->size = in->rex & 8 ? 8 : 4;
	/* With such a prefix only nop, endbr, returns and jumps are known, on which the prefix has no effect. */
	if (is_short && opcode != 0x90 && (opcode != 0x0f || in->at >= in->len || in->code[in->at] != 0x1f))
		return -ENOTSUP;
	if (is_repeat && opcode != 0xc3 && opcode != 0xff && (opcode & 0xfe) != 0xe8 && opcode != 0x0f)
		return -ENOTSUP;
	if (is_repeat && opcode == 0x0f && in->at < in->len && in->code[in->at] != 0x1e &&
	    in->code[in->at] >> 4 != 8)
		return -ENOTSUP;
	err = opcode == 0x0f ? do_two_bytes(in, is_repeat) : do_opcode(in, opcode);
	if (!err && in->at)
		set_reg(in, REG_IP, cut(behind(in), word_size(in)));
	return err;
}

int cpu_x86_emulate(const struct cpu *cpu, struct cpu_regs *regs, const u8 *code, size_t len,
		    const struct cpu_memory *memory)
{
	struct x86_insn in = {
		.regs = *regs, .memory = memory, .code = code, .len = len, .is_64 = cpu->word_size == 8
	};
	int err = decode(&in);

	if (!err)
		*regs = in.regs;
	return err;
}

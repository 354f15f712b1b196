/* SPDX-License-Identifier: GPL-2.0-or-later */
/* x86_64 and i386 instructions, decoded by Zydis. arch/insn_x86_capstone.c does so for static builds. */
#include "arch/insn_private.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

#include <Zydis/Zydis.h>

/* Bit of the argument that @reg carries in a 64-bit call, 0 if none. */
static u8 arg_bit(ZydisRegister reg)
{
	static const ZydisRegister args[] = { ZYDIS_REGISTER_RDI, ZYDIS_REGISTER_RSI, ZYDIS_REGISTER_RDX,
					      ZYDIS_REGISTER_RCX };

	for (size_t i = 0; i < ARRAY_SIZE(args); i++)
		if (reg == args[i])
			return 1 << i;
	return 0;
}

/* mov of one argument's register to another one's. */
static void note_move(struct insn *out, const ZydisDecodedInstruction *in, const ZydisDecodedOperand *ops)
{
	u8 to, from;

	if (in->mnemonic != ZYDIS_MNEMONIC_MOV || ops[0].type != ZYDIS_OPERAND_TYPE_REGISTER ||
	    ops[1].type != ZYDIS_OPERAND_TYPE_REGISTER)
		return;
	to = arg_bit(ops[0].reg.value);
	from = arg_bit(ops[1].reg.value);
	if (!to || !from)
		return;
	out->moves_to = __builtin_ctz(to) + 1;
	out->moves_from = __builtin_ctz(from) + 1;
}

static void note_writes(struct insn *out, const ZydisDecodedInstruction *in, const ZydisDecodedOperand *ops)
{
	for (u8 i = 0; i < in->operand_count; i++) {
		ZydisRegister reg = ops[i].reg.value;

		if (ops[i].type != ZYDIS_OPERAND_TYPE_REGISTER ||
		    !(ops[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
			continue;
		reg = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
		if (reg == ZYDIS_REGISTER_RSP)
			out->moves_return = true;
		out->writes_args |= arg_bit(reg);
	}
}

static enum insn_kind kind_of(const ZydisDecodedInstruction *in, const ZydisDecodedOperand *ops)
{
	switch (in->meta.category) {
	case ZYDIS_CATEGORY_NOP:
	case ZYDIS_CATEGORY_WIDENOP:
		return INSN_NOP;
	case ZYDIS_CATEGORY_PUSH:
		return ops[0].type == ZYDIS_OPERAND_TYPE_REGISTER ? INSN_PUSH : INSN_OTHER;
	case ZYDIS_CATEGORY_UNCOND_BR:
		return INSN_JUMP;
	case ZYDIS_CATEGORY_COND_BR:
		return INSN_BRANCH;
	case ZYDIS_CATEGORY_CALL:
		return INSN_CALL;
	case ZYDIS_CATEGORY_RET:
		return INSN_RETURN;
	default:
		break;
	}
	if (in->mnemonic == ZYDIS_MNEMONIC_UD2 || in->mnemonic == ZYDIS_MNEMONIC_INT3 ||
	    in->mnemonic == ZYDIS_MNEMONIC_HLT)
		return INSN_TRAP;
	return INSN_OTHER;
}

/* lea of an address at a fixed distance, or mov of a constant that may be an address. */
static void note_address(struct insn *out, const ZydisDecodedInstruction *in, const ZydisDecodedOperand *ops,
			 taddr_t pc)
{
	ZyanU64 address = 0;

	if (in->mnemonic == ZYDIS_MNEMONIC_LEA &&
	    ZYAN_SUCCESS(ZydisCalcAbsoluteAddress(in, &ops[1], pc, &address)))
		out->address = address;
	else if (in->mnemonic == ZYDIS_MNEMONIC_MOV && ops[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
		 ops[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE)
		out->address = ops[1].imm.value.u;
}

/*
 * The kernel emulates push of a general register, nop, and relative jmp, jcc and call; an operand-size
 * prefix makes it refuse a branch (arch/x86/kernel/uprobes.c, since 5.1 with push).
 */
static bool is_emulated(const struct insn *insn, const ZydisDecodedInstruction *in)
{
	if (in->attributes & ZYDIS_ATTRIB_HAS_OPERANDSIZE)
		return false;
	switch (insn->kind) {
	case INSN_PUSH:
		return in->opcode >= 0x50 && in->opcode <= 0x57;
	case INSN_NOP:
		return in->mnemonic == ZYDIS_MNEMONIC_NOP;
	case INSN_JUMP:
	case INSN_CALL:
		return insn->target;
	case INSN_BRANCH:
		return insn->target && (in->opcode & 0xf0) != 0xe0; /* not loop, jrcxz */
	default:
		return false;
	}
}

int insn_x86_decode(struct insn *out, u16 elf_machine, taddr_t pc, const u8 *code, size_t len)
{
	ZydisDecoder decoder;
	ZydisDecodedInstruction in;
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
	bool is_64bit = elf_machine == EM_X86_64;

	ZydisDecoderInit(&decoder, is_64bit ? ZYDIS_MACHINE_MODE_LONG_64 : ZYDIS_MACHINE_MODE_LEGACY_32,
			 is_64bit ? ZYDIS_STACK_WIDTH_64 : ZYDIS_STACK_WIDTH_32);
	if (ZYAN_FAILED(ZydisDecoderDecodeFull(&decoder, code, len, &in, ops)))
		return -EINVAL;
	memset(out, 0, sizeof(*out));
	out->length = in.length;
	out->kind = kind_of(&in, ops);
	note_writes(out, &in, ops);
	note_move(out, &in, ops);
	note_address(out, &in, ops, pc);
	for (u8 i = 0; i < in.operand_count_visible; i++) {
		ZyanU64 address = 0;

		if (ops[i].type == ZYDIS_OPERAND_TYPE_MEMORY && ops[i].mem.disp.value < 0 &&
		    (ops[i].mem.base == ZYDIS_REGISTER_RSP || ops[i].mem.base == ZYDIS_REGISTER_ESP))
			out->is_below_sp = true;
		if (ZYAN_FAILED(ZydisCalcAbsoluteAddress(&in, &ops[i], pc, &address)))
			continue;
		if (ops[i].type == ZYDIS_OPERAND_TYPE_IMMEDIATE && ops[i].imm.is_relative)
			out->target = address;
		else if (ops[i].type == ZYDIS_OPERAND_TYPE_MEMORY &&
			 (out->kind == INSN_JUMP || out->kind == INSN_CALL))
			out->slot = address;
	}
	out->is_emulated = is_emulated(out, &in);
	return 0;
}

/* Write @distance, that from the end of an instruction to its target, to the last four bytes of it. */
static int put_distance(u8 *at, u64 distance)
{
	s32 low = (s32)distance;

	if ((s64)distance != low)
		return -ERANGE;
	memcpy(at, &low, sizeof(low));
	return 0;
}

/* A relative jump or branch gets its longest form. */
static int move_branch(const ZydisDecodedInstruction *in, taddr_t target, taddr_t to, u8 *out)
{
	bool is_jump = in->mnemonic == ZYDIS_MNEMONIC_JMP;
	int len = is_jump ? 5 : 6, err;

	/* Not loop, jrcxz, call. */
	if (!is_jump && (in->meta.category != ZYDIS_CATEGORY_COND_BR || (in->opcode & 0xf0) == 0xe0))
		return -ENOTSUP;
	out[0] = is_jump ? 0xe9 : 0x0f;
	out[1] = 0x80 | (in->opcode & 0x0f);
	err = put_distance(out + len - 4, target - (to + (u64)len));
	return err ? err : len;
}

int insn_x86_move(u16 elf_machine, taddr_t pc, const u8 *code, size_t len, taddr_t to, u8 *out)
{
	ZydisDecoder decoder;
	ZydisDecodedInstruction in;
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
	s32 distance;
	int err;

	if (elf_machine != EM_X86_64)
		return -ENOTSUP;
	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	if (ZYAN_FAILED(ZydisDecoderDecodeFull(&decoder, code, len, &in, ops)))
		return -EINVAL;
	if (in.meta.category == ZYDIS_CATEGORY_CALL || in.length > INSN_MAX_MOVED)
		return -ENOTSUP;
	if (in.raw.imm[0].is_relative && in.raw.imm[0].size)
		return move_branch(&in, pc + in.length + (u64)in.raw.imm[0].value.s, to, out);
	memcpy(out, code, in.length);
	if (!(in.attributes & ZYDIS_ATTRIB_IS_RELATIVE))
		return in.length;
	if (in.raw.disp.size != 32)
		return -ENOTSUP;
	memcpy(&distance, code + in.raw.disp.offset, sizeof(distance));
	err = put_distance(out + in.raw.disp.offset, pc - to + (u64)(s64)distance);
	return err ? err : in.length;
}

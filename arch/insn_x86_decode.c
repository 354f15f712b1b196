/* SPDX-License-Identifier: GPL-2.0-or-later */
/* x86_64 and i386 instructions, decoded by Capstone. */
#include "arch/insn_private.h"

#include <capstone/capstone.h>
#include <elf.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { ENDBR_BYTES = 4 };

/* Made when it is needed first, and kept: making one costs as much as decoding a hundred instructions. */
struct decoder {
	csh handle;
	cs_insn *in; /* the instruction that was decoded last; NULL = not made yet */
};

/*
 * For 32 and for 64 bits. One thread at a time has them. Capstone 4 does not look whether it gets memory, and keeps it:
 * both decoders need 40,144 bytes.
 */
static struct decoder decoders[2];
static struct {
	pthread_mutex_t lock;
	size_t used;
	_Alignas(16) u8 bytes[96 << 10];
} decoders_room = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void *room_malloc(size_t size)
{
	void *out = decoders_room.bytes + decoders_room.used;

	size = (size + 15) & ~(size_t)15;
	if (size > sizeof(decoders_room.bytes) - decoders_room.used)
		return NULL;
	decoders_room.used += size;
	return out;
}

/* New room is all zero. */
static void *room_calloc(size_t nr, size_t size)
{
	return room_malloc(nr * size);
}

static void *room_realloc(void *old, size_t size)
{
	(void)old;
	(void)size;
	return NULL;
}

static void room_free(void *old)
{
	(void)old;
}

static int decoder_open(struct decoder *d, bool is_64bit)
{
	cs_opt_mem memory = { room_malloc, room_calloc, room_realloc, room_free, vsnprintf };

	if (d->in)
		return 0;
	if (!decoders_room.used && cs_option(0, CS_OPT_MEM, (size_t)&memory))
		return -ENOMEM;
	if (cs_open(CS_ARCH_X86, is_64bit ? CS_MODE_64 : CS_MODE_32, &d->handle))
		return -ENOMEM;
	cs_option(d->handle, CS_OPT_DETAIL, CS_OPT_ON);
	d->in = cs_malloc(d->handle);
	if (d->in)
		return 0;
	cs_close(&d->handle);
	return -ENOMEM;
}

static bool is_in_group(const cs_insn *in, u8 group)
{
	for (u8 i = 0; i < in->detail->groups_count; i++)
		if (in->detail->groups[i] == group)
			return true;
	return false;
}

/*
 * Is the length in doubt? That of a relative branch of 16 bits in 64-bit code differs between processors, that of ud0
 * and ud1 between releases of Capstone.
 */
static bool is_doubtful(const cs_insn *in, bool is_64bit)
{
	enum { REX_W = 8, UD0 = 0xff, UD1 = 0xb9 };
	const cs_x86 *x = &in->detail->x86;

	if (x->opcode[0] == 0x0f && (x->opcode[1] == UD0 || x->opcode[1] == UD1))
		return true;
	return is_64bit && x->prefix[2] == X86_PREFIX_OPSIZE && !(x->rex & REX_W) &&
	       is_in_group(in, X86_GRP_BRANCH_RELATIVE);
}

/* With the instruction at @pc in it; for decoder_put(). -EINVAL: no instruction, -ENOMEM. */
static int decoder_get(struct decoder **out, u16 elf_machine, taddr_t pc, const u8 *code, size_t len)
{
	bool is_64bit = elf_machine == EM_X86_64;
	struct decoder *d = &decoders[is_64bit];
	int err;

	pthread_mutex_lock(&decoders_room.lock);
	err = decoder_open(d, is_64bit);
	if (!err && (!cs_disasm_iter(d->handle, &code, &len, &pc, d->in) || is_doubtful(d->in, is_64bit)))
		err = -EINVAL;
	if (err)
		pthread_mutex_unlock(&decoders_room.lock);
	else
		*out = d;
	return err;
}

static void decoder_put(void)
{
	pthread_mutex_unlock(&decoders_room.lock);
}

/* Bit of the argument that @reg carries in a 64-bit call, 0 if none. */
static u8 arg_bit(x86_reg reg)
{
	static const x86_reg args[] = { X86_REG_RDI, X86_REG_RSI, X86_REG_RDX, X86_REG_RCX };

	for (size_t i = 0; i < ARRAY_SIZE(args); i++)
		if (reg == args[i])
			return 1 << i;
	return 0;
}

/* The whole register of which @reg is a part; other registers are not told apart. */
static x86_reg whole(x86_reg reg)
{
	static const x86_reg parts[][6] = {
		{ X86_REG_RDI, X86_REG_EDI, X86_REG_DI, X86_REG_DIL, X86_REG_DIL },
		{ X86_REG_RSI, X86_REG_ESI, X86_REG_SI, X86_REG_SIL, X86_REG_SIL },
		{ X86_REG_RDX, X86_REG_EDX, X86_REG_DX, X86_REG_DL, X86_REG_DH },
		{ X86_REG_RCX, X86_REG_ECX, X86_REG_CX, X86_REG_CL, X86_REG_CH },
		{ X86_REG_RSP, X86_REG_ESP, X86_REG_SP, X86_REG_SPL, X86_REG_SPL },
	};

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		for (size_t k = 0; k < 5; k++)
			if (reg == parts[i][k])
				return parts[i][0];
	return X86_REG_INVALID;
}

static void note_writes(struct insn *out, const struct decoder *d)
{
	cs_regs reads, writes;
	u8 nr_reads = 0, nr_writes = 0;

	if (cs_regs_access(d->handle, d->in, reads, &nr_reads, writes, &nr_writes))
		nr_writes = 0;
	for (u8 i = 0; i < nr_writes; i++) {
		x86_reg reg = whole(writes[i]);

		out->moves_return |= reg == X86_REG_RSP;
		out->writes_args |= arg_bit(reg);
	}
	if (d->in->id == X86_INS_SYSCALL)
		out->writes_args |= arg_bit(X86_REG_RCX);
}

/* mov of one argument's register to another one's. */
static void note_move(struct insn *out, const cs_insn *in)
{
	const cs_x86 *x = &in->detail->x86;
	u8 to, from;

	if (in->id != X86_INS_MOV || x->op_count != 2 || x->operands[0].type != X86_OP_REG ||
	    x->operands[1].type != X86_OP_REG)
		return;
	to = arg_bit(x->operands[0].reg);
	from = arg_bit(x->operands[1].reg);
	if (!to || !from)
		return;
	out->moves_to = __builtin_ctz(to) + 1;
	out->moves_from = __builtin_ctz(from) + 1;
}

static enum insn_kind kind_of(const cs_insn *in)
{
	const cs_x86 *x = &in->detail->x86;

	switch (in->id) {
	case X86_INS_NOP:
		return INSN_NOP;
	case X86_INS_PUSH:
		return x->op_count && x->operands[0].type == X86_OP_REG ? INSN_PUSH : INSN_OTHER;
	case X86_INS_JMP:
	case X86_INS_LJMP:
		return INSN_JUMP;
	case X86_INS_CALL:
	case X86_INS_LCALL:
		return INSN_CALL;
	case X86_INS_UD2:
	case X86_INS_INT3:
	case X86_INS_HLT:
		return INSN_TRAP;
	default:
		break;
	}
	if (is_in_group(in, X86_GRP_RET) || is_in_group(in, X86_GRP_IRET))
		return INSN_RETURN;
	return is_in_group(in, X86_GRP_JUMP) || is_in_group(in, X86_GRP_BRANCH_RELATIVE) ? INSN_BRANCH
											 : INSN_OTHER;
}

/* The address that memory operand @op names itself, without other registers; else 0. */
static taddr_t fixed_address(const cs_insn *in, const cs_x86_op *op)
{
	bool is_relative = op->mem.base == X86_REG_RIP || op->mem.base == X86_REG_EIP;

	if (op->type != X86_OP_MEM || op->mem.index != X86_REG_INVALID)
		return 0;
	if (!is_relative && op->mem.base != X86_REG_INVALID)
		return 0;
	return op->mem.disp + (is_relative ? in->address + in->size : 0);
}

static void note_addresses(struct insn *out, const cs_insn *in)
{
	const cs_x86 *x = &in->detail->x86;
	bool is_branch = out->kind == INSN_JUMP || out->kind == INSN_CALL || out->kind == INSN_BRANCH;

	for (u8 i = 0; i < x->op_count; i++)
		if (x->operands[i].type == X86_OP_MEM && x->operands[i].mem.disp < 0 &&
		    (x->operands[i].mem.base == X86_REG_RSP || x->operands[i].mem.base == X86_REG_ESP))
			out->is_below_sp = true;
	if (in->id == X86_INS_LEA && x->op_count == 2)
		out->address = fixed_address(in, &x->operands[1]);
	else if ((in->id == X86_INS_MOV || in->id == X86_INS_MOVABS) && x->op_count == 2 &&
		 x->operands[0].type == X86_OP_REG && x->operands[1].type == X86_OP_IMM)
		out->address = x->operands[1].imm;
	if (!is_branch || x->op_count != 1)
		return;
	if (x->operands[0].type == X86_OP_IMM)
		out->target = x->operands[0].imm;
	else if (out->kind != INSN_BRANCH)
		out->slot = fixed_address(in, &x->operands[0]);
}

/*
 * The kernel emulates push of a general register, nop, and relative jmp, jcc and call; an operand-size
 * prefix makes it refuse a branch (arch/x86/kernel/uprobes.c, since 5.1 with push).
 */
static bool is_emulated(const struct insn *insn, const cs_insn *in)
{
	const cs_x86 *x = &in->detail->x86;

	if (x->prefix[2] == X86_PREFIX_OPSIZE)
		return false;
	switch (insn->kind) {
	case INSN_PUSH:
		return x->opcode[0] >= 0x50 && x->opcode[0] <= 0x57;
	case INSN_NOP:
		return true;
	case INSN_JUMP:
	case INSN_CALL:
		return insn->target;
	case INSN_BRANCH:
		return insn->target && (x->opcode[0] & 0xf0) != 0xe0; /* not loop, jrcxz */
	default:
		return false;
	}
}

/* Older releases take endbr for a nop. */
static bool is_landing_pad(const u8 *code, size_t len)
{
	return len >= ENDBR_BYTES && code[0] == 0xf3 && code[1] == 0x0f && code[2] == 0x1e &&
	       (code[3] == 0xfa || code[3] == 0xfb);
}

int insn_x86_decode(struct insn *out, u16 elf_machine, taddr_t pc, const u8 *code, size_t len)
{
	struct decoder *d;
	int err;

	*out = (struct insn){ 0 };
	if (is_landing_pad(code, len)) {
		out->length = ENDBR_BYTES;
		return 0;
	}
	err = decoder_get(&d, elf_machine, pc, code, len);
	if (err)
		return err;
	out->length = d->in->size;
	out->kind = kind_of(d->in);
	note_writes(out, d);
	note_move(out, d->in);
	note_addresses(out, d->in);
	out->is_emulated = is_emulated(out, d->in);
	decoder_put();
	return 0;
}

/* Write @distance, that from the end of an instruction to its target, to four bytes @at. */
static int put_distance(u8 *at, u64 distance)
{
	s32 low = (s32)distance;

	if ((s64)distance != low)
		return -ERANGE;
	memcpy(at, &low, sizeof(low));
	return 0;
}

/* A relative jump or branch gets its longest form. Not loop, jrcxz, xbegin. */
static int move_branch(const cs_insn *in, enum insn_kind kind, taddr_t to, u8 *out)
{
	const u8 *opcode = in->detail->x86.opcode;
	int len = kind == INSN_JUMP ? 5 : 6, err;
	u8 condition = opcode[0] == 0x0f ? opcode[1] : opcode[0];

	if (kind == INSN_BRANCH && (condition & 0xf0) != (opcode[0] == 0x0f ? 0x80 : 0x70))
		return -ENOTSUP;
	out[0] = kind == INSN_JUMP ? 0xe9 : 0x0f;
	out[1] = 0x80 | (condition & 0x0f);
	err = put_distance(out + len - 4, (u64)in->detail->x86.operands[0].imm - (to + (u64)len));
	return err ? err : len;
}

/* The operand that is at a distance from the instruction, NULL if none is. */
static const cs_x86_op *relative_operand(const cs_x86 *x)
{
	for (u8 i = 0; i < x->op_count; i++)
		if (x->operands[i].type == X86_OP_MEM &&
		    (x->operands[i].mem.base == X86_REG_RIP || x->operands[i].mem.base == X86_REG_EIP))
			return &x->operands[i];
	return NULL;
}

static int move(const cs_insn *in, taddr_t to, u8 *out)
{
	const cs_x86 *x = &in->detail->x86;
	enum insn_kind kind = kind_of(in);
	const cs_x86_op *op;
	s32 distance;
	size_t at;
	int err;

	if (kind == INSN_CALL || in->size > INSN_MAX_MOVED)
		return -ENOTSUP;
	if (x->op_count == 1 && x->operands[0].type == X86_OP_IMM && is_in_group(in, X86_GRP_BRANCH_RELATIVE))
		return kind == INSN_JUMP || kind == INSN_BRANCH ? move_branch(in, kind, to, out) : -ENOTSUP;
	memcpy(out, in->bytes, in->size);
	op = relative_operand(x);
	if (!op)
		return in->size;
	at = x->encoding.modrm_offset + 1U;
	if (at + sizeof(distance) > in->size)
		return -ENOTSUP;
	memcpy(&distance, in->bytes + at, sizeof(distance));
	if (distance != op->mem.disp)
		return -ENOTSUP;
	err = put_distance(out + at, in->address - to + (u64)op->mem.disp);
	return err ? err : in->size;
}

int insn_x86_move(u16 elf_machine, taddr_t pc, const u8 *code, size_t len, taddr_t to, u8 *out)
{
	struct decoder *d;
	int err;

	if (elf_machine != EM_X86_64)
		return -ENOTSUP;
	err = decoder_get(&d, elf_machine, pc, code, len);
	if (err)
		return err;
	err = move(d->in, to, out);
	decoder_put();
	return err;
}

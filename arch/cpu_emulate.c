/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Carries out one instruction by the tables of its CPU, on a copy of the registers. */
#include "arch/cpu_emulate.h"

#include <errno.h>
#include <string.h>

u64 cpu_regs_word(const struct cpu_regs *regs, u8 word_size, u32 index)
{
	u32 word;
	u64 wide;

	if (word_size == 8) {
		memcpy(&wide, regs->bytes + (size_t)index * 8, 8);
		return wide;
	}
	memcpy(&word, regs->bytes + (size_t)index * 4, 4);
	return word;
}

void cpu_regs_set_word(struct cpu_regs *regs, u8 word_size, u32 index, u64 value)
{
	u32 word = (u32)value;

	if (word_size == 8)
		memcpy(regs->bytes + (size_t)index * 8, &value, 8);
	else
		memcpy(regs->bytes + (size_t)index * 4, &word, 4);
}

u64 cpu_insn_get(const struct cpu_insn *in, u32 index)
{
	return cpu_regs_word(&in->regs, in->cpu->word_size, index);
}

void cpu_insn_set(struct cpu_insn *in, u32 index, u64 value)
{
	cpu_regs_set_word(&in->regs, in->cpu->word_size, index, value);
}

static taddr_t address_of(const struct cpu_insn *in, taddr_t addr)
{
	return in->cpu->word_size == 4 ? (u32)addr : addr;
}

int cpu_insn_load(const struct cpu_insn *in, taddr_t addr, size_t size, u64 *value)
{
	u8 bytes[8];
	int err = in->memory->read(in->memory->ctx, address_of(in, addr), bytes, size);

	if (!err)
		*value = in->cpu->is_big ? cpu_insn_big_endian(bytes, size)
					 : cpu_insn_little_endian(bytes, size);
	return err;
}

int cpu_insn_load_signed(const struct cpu_insn *in, taddr_t addr, size_t size, u64 *value)
{
	int err = cpu_insn_load(in, addr, size, value);

	if (!err)
		*value = cpu_sign_extend(*value, 8 * (u32)size);
	return err;
}

void cpu_insn_bytes(const struct cpu_insn *in, u8 *bytes, size_t size, u64 value)
{
	for (size_t i = 0; i < size; i++)
		bytes[in->cpu->is_big ? size - 1 - i : i] = (u8)(value >> 8 * i);
}

int cpu_insn_store(const struct cpu_insn *in, taddr_t addr, size_t size, u64 value)
{
	u8 bytes[8];

	cpu_insn_bytes(in, bytes, size, value);
	return in->memory->write(in->memory->ctx, address_of(in, addr), bytes, size);
}

size_t cpu_insn_length_4(const u8 *code, size_t len)
{
	(void)code;
	return len < 4 ? 0 : 4;
}

u64 cpu_insn_little_endian(const u8 *code, size_t length)
{
	u64 number = 0;

	while (length--)
		number = number << 8 | code[length];
	return number;
}

u64 cpu_insn_big_endian(const u8 *code, size_t length)
{
	u64 number = 0;

	for (size_t i = 0; i < length; i++)
		number = number << 8 | code[i];
	return number;
}

int cpu_insn_nothing(struct cpu_insn *in, u64 insn)
{
	(void)in;
	(void)insn;
	return 0;
}

int cpu_insn_unknown(struct cpu_insn *in, u64 insn)
{
	(void)in;
	(void)insn;
	return -ENOTSUP;
}

int cpu_insn_do(struct cpu_insn *in, const struct cpu_pattern *patterns, u64 insn)
{
	for (; patterns->do_it; patterns++)
		if ((insn & patterns->mask) == patterns->value)
			return patterns->do_it(in, insn);
	return -ENOTSUP;
}

/* The instruction set of code at @addr, whose bit 0 marks Thumb code. */
static const struct cpu_isa *isa_at(const struct cpu *cpu, taddr_t addr)
{
	return cpu->thumb && addr & 1 ? cpu->thumb : cpu->isa;
}

/* Cut the instruction at pc out of @code. False if its length is not known. */
static bool take_insn(struct cpu_insn *in, const struct cpu_isa *isa, u64 *insn)
{
	in->length = isa->length(in->code, in->len);
	in->next = in->pc + in->length;
	*insn = in->length ? isa->number(in->code, in->length) : 0;
	return in->length;
}

static struct cpu_insn begin_insn(const struct cpu *cpu, const struct cpu_isa *isa,
				  const struct cpu_regs *regs, const u8 *code, size_t len)
{
	struct cpu_insn in = { .regs = *regs, .cpu = cpu, .code = code, .len = len };

	in.pc = cpu_get(cpu, regs, CPU_PC);
	if (isa == cpu->thumb)
		in.pc &= ~1ULL;
	return in;
}

int cpu_emulate(const struct cpu *cpu, struct cpu_regs *regs, const u8 *code, size_t len,
		const struct cpu_memory *memory)
{
	const struct cpu_isa *isa = isa_at(cpu, cpu_get(cpu, regs, CPU_PC));
	struct cpu_insn in;
	u64 insn;
	int err;

	if (isa->emulate)
		return isa->emulate(cpu, regs, code, len, memory);
	in = begin_insn(cpu, isa, regs, code, len);
	in.memory = memory;
	if (!take_insn(&in, isa, &insn))
		return -ENOTSUP;
	err = isa->carry_out ? isa->carry_out(&in, insn) : cpu_insn_do(&in, isa->patterns, insn);
	if (err)
		return err;
	cpu_regs_set_word(&in.regs, cpu->word_size, cpu->words[CPU_PC], in.next);
	*regs = in.regs;
	return 0;
}

size_t cpu_insn_length(const struct cpu *cpu, const struct cpu_regs *regs, const u8 *code, size_t len)
{
	const struct cpu_isa *isa = isa_at(cpu, cpu_get(cpu, regs, CPU_PC));
	struct cpu_insn in;
	u64 insn;

	if (isa->emulate)
		return 0;
	in = begin_insn(cpu, isa, regs, code, len);
	return take_insn(&in, isa, &insn) && !isa->may_branch(&in, insn) ? in.length : 0;
}

size_t cpu_breakpoint(const struct cpu *cpu, taddr_t addr, u8 code[CPU_BREAKPOINT_BYTES])
{
	const struct cpu_isa *isa = isa_at(cpu, addr);

	memcpy(code, isa->breakpoint, isa->breakpoint_size);
	return isa->breakpoint_size;
}

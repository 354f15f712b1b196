/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Registers, memory and patterns for the emulation of plain instructions. */
#include "arch/cpu_insn.h"

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

	if (err)
		return err;
	*value = 0;
	for (size_t i = 0; i < size; i++)
		*value = *value << 8 | bytes[in->cpu->is_big ? i : size - 1 - i];
	return 0;
}

int cpu_insn_load_signed(const struct cpu_insn *in, taddr_t addr, size_t size, u64 *value)
{
	int err = cpu_insn_load(in, addr, size, value);

	if (!err)
		*value = cpu_sign_extend(*value, 8 * (u32)size);
	return err;
}

int cpu_insn_store(const struct cpu_insn *in, taddr_t addr, size_t size, u64 value)
{
	u8 bytes[8];

	for (size_t i = 0; i < size; i++)
		bytes[in->cpu->is_big ? size - 1 - i : i] = (u8)(value >> 8 * i);
	return in->memory->write(in->memory->ctx, address_of(in, addr), bytes, size);
}

int cpu_insn_do(struct cpu_insn *in, const struct cpu_pattern *patterns, u32 word)
{
	for (; patterns->do_it; patterns++)
		if ((word & patterns->mask) == patterns->value)
			return patterns->do_it(in, word);
	return -ENOTSUP;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* x86_64 and i386 for breakpoints; the emulation is in arch/cpu_x86_emulate.c. */
#include "arch/cpu_x86.h"

#include <elf.h>
#include <string.h>

/* Words in the kernel's order: 64-bit, 32-bit. */
enum { RBP = 4, RAX = 10, RCX, RDX, RSI, RDI, RIP = 16, RSP = 19, NR_WORDS_64 = 27 };
enum { EDX = 2, EBP = 5, EAX = 6, EIP = 12, ESP = 15, NR_WORDS_32 = 17 };

static const u8 words_64[NR_CPU_REGS] = {
	[CPU_PC] = RIP,	  [CPU_SP] = RSP,   [CPU_FP] = RBP,   [CPU_RESULT] = RAX,
	[CPU_ARG1] = RDI, [CPU_ARG2] = RSI, [CPU_ARG3] = RDX, [CPU_ARG4] = RCX,
};

static const u8 words_32[NR_CPU_REGS] = {
	[CPU_PC] = EIP, [CPU_SP] = ESP, [CPU_FP] = EBP, [CPU_RESULT] = EAX
};

static taddr_t get_64(const struct cpu_regs *regs, enum cpu_reg reg)
{
	u64 value;

	if (reg == CPU_LINK)
		return 0;
	memcpy(&value, regs->bytes + words_64[reg] * 8, 8);
	return value;
}

static void set_64(struct cpu_regs *regs, enum cpu_reg reg, taddr_t value)
{
	if (reg != CPU_LINK)
		memcpy(regs->bytes + words_64[reg] * 8, &value, 8);
}

static taddr_t get_32(const struct cpu_regs *regs, enum cpu_reg reg)
{
	u32 value;

	if (reg == CPU_LINK || reg >= CPU_ARG1)
		return 0;
	memcpy(&value, regs->bytes + words_32[reg] * 4, 4);
	return value;
}

static void set_32(struct cpu_regs *regs, enum cpu_reg reg, taddr_t value)
{
	u32 word = (u32)value;

	if (reg != CPU_LINK && reg < CPU_ARG1)
		memcpy(regs->bytes + words_32[reg] * 4, &word, 4);
}

static size_t breakpoint(taddr_t addr, u8 code[CPU_BREAKPOINT_BYTES])
{
	(void)addr;
	code[0] = 0xcc; /* int3 */
	return 1;
}

/* All instructions that could be of use are emulated, and there is a single step. */
static size_t insn_length(const struct cpu_regs *regs, const u8 *code, size_t len)
{
	(void)regs;
	(void)code;
	(void)len;
	return 0;
}

const struct cpu cpu_x86_64 = {
	.name = "x86_64",
	.machine = EM_X86_64,
	.word_size = 8,
	.has_step = true,
	.trap_skip = 1,
	.regs_size = NR_WORDS_64 * 8,
	.get = get_64,
	.set = set_64,
	.breakpoint = breakpoint,
	.emulate = cpu_x86_emulate_64,
	.insn_length = insn_length,
};

const struct cpu cpu_i386 = {
	.name = "i386",
	.machine = EM_386,
	.word_size = 4,
	.args_on_stack = true,
	.has_step = true,
	.trap_skip = 1,
	.regs_size = NR_WORDS_32 * 4,
	.get = get_32,
	.set = set_32,
	.breakpoint = breakpoint,
	.emulate = cpu_x86_emulate_32,
	.insn_length = insn_length,
};

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* x86_64 and i386 for breakpoints; the emulation is in arch/cpu_x86_emulate.c. */
#include "arch/cpu_x86.h"

#include <elf.h>

/* Words in the kernel's order: 64-bit, 32-bit. */
enum { RBP = 4, RAX = 10, RCX, RDX, RSI, RDI, RIP = 16, RSP = 19, NR_WORDS_64 = 27 };
enum { EDX = 2, EBP = 5, EAX = 6, EIP = 12, ESP = 15, NR_WORDS_32 = 17 };

/* All instructions that matter here are emulated, and the CPU can step: lengths are not needed. */
static const struct cpu_isa isa = {
	.emulate = cpu_x86_emulate,
	.breakpoint = { 0xcc }, /* int3 */
	.breakpoint_size = 1,
};

const struct cpu cpu_x86_64 = {
	.name = "x86_64",
	.machine = EM_X86_64,
	.word_size = 8,
	.has_step = true,
	.trap_skip = 1,
	.regs_size = NR_WORDS_64 * 8,
	.words = { [CPU_PC] = RIP,
		   [CPU_SP] = RSP,
		   [CPU_FP] = RBP,
		   [CPU_LINK] = CPU_NO_WORD,
		   [CPU_RESULT] = RAX,
		   [CPU_ARG1] = RDI,
		   [CPU_ARG2] = RSI,
		   [CPU_ARG3] = RDX,
		   [CPU_ARG4] = RCX },
	.isa = &isa,
};

const struct cpu cpu_i386 = {
	.name = "i386",
	.machine = EM_386,
	.word_size = 4,
	.args_on_stack = true,
	.has_step = true,
	.trap_skip = 1,
	.regs_size = NR_WORDS_32 * 4,
	.words = { [CPU_PC] = EIP,
		   [CPU_SP] = ESP,
		   [CPU_FP] = EBP,
		   [CPU_LINK] = CPU_NO_WORD,
		   [CPU_RESULT] = EAX,
		   [CPU_ARG1... CPU_ARG4] = CPU_NO_WORD },
	.isa = &isa,
};

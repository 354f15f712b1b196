/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A program has copied code of its own, with a breakpoint of ours in it, and runs the copy: it moves its code to large
 * pages, or hooks functions. Nobody knows the copy, so the kernel would end the program by SIGTRAP.
 */
#pragma once

#include "arch/cpu.h"

struct copied_code {
	const struct cpu *cpu;
	taddr_t pc, addr;	 /* of the breakpoint in the copy; pc has the mark of Thumb code */
	u8 code[CPU_CODE_BYTES]; /* from there on */
	size_t nr;
	/* The place that is most alike: the program's code there. */
	u8 original[CPU_CODE_BYTES];
	size_t nr_original, nr_same; /* nr_same 0: no place is alike */
	bool is_unsure;		     /* another one is as much so, and has another first instruction */
};

/*
 * The thread of @regs has got SIGTRAP from the kernel: what has it run into? Then copied_code_try() for each place of a
 * breakpoint. 0 or -errno: its code cannot be read.
 */
int copied_code_read(struct copied_code *c, const struct cpu *cpu, const struct cpu_regs *regs,
		     const struct cpu_memory *memory) __must_check;

/*
 * Is it a copy of the code at @addr, where the program has @nr bytes @original without breakpoints? True: this place is
 * the most alike so far.
 */
bool copied_code_try(struct copied_code *c, taddr_t addr, const u8 *original, size_t nr);

/* Is it certain what the program has in place of the breakpoint? */
bool copied_code_is_known(const struct copied_code *c);

/*
 * Take the breakpoint out of the copy, and let @regs go on with the program's instruction. 0; -ENOENT: it is no copy
 * of ours, or not certainly one; or another -errno.
 */
int copied_code_mend(const struct copied_code *c, struct cpu_regs *regs,
		     const struct cpu_memory *memory) __must_check;

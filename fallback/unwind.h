/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Walks a call stack in user space by compiled call frame information. The BPF walk has the same steps. */
#pragma once

#include "bpf/event.h"
#include "user/lib/types.h"

struct unwind_regs {
	taddr_t pc, sp, fp;
	taddr_t lr; /* link register; 0 on CPUs without one */
	/* The function has not run yet: the return address is where calls leave it, and no table is needed. */
	bool is_at_entry;
};

/* Where an address lies. */
struct unwind_place {
	const struct cfi_table *table; /* borrowed; NULL = no information: frame pointers are tried */
	taddr_t bias;		       /* address - ELF virtual address */
};

/* Access to the target. The functions must not change it, and are called only during a walk. */
struct unwinder {
	const struct unwind_arch *arch;
	bool is_big;	  /* byte order of the target */
	u64 address_mask; /* significant bits of a return address, 0 = all: code_mask of arch/cpu.h */
	taddr_t start_sp; /* stack pointer at the program's first instruction; 0 = not known */
	void *ctx;
	/* Copy @len bytes at @addr. 0 or -errno. */
	int (*read)(void *ctx, taddr_t addr, void *buf, size_t len);
	/* Find the code at @pc. False if @pc is in no executable mapping. */
	bool (*find)(void *ctx, taddr_t pc, struct unwind_place *place);
};

/*
 * Find the callers of the function at @regs, innermost first, at most @max. Returns their number; *@end is the reason
 * of the end. @regs->pc itself is not among them. All are return addresses: where a signal interrupted, the address
 * is that of the instruction + 1, so that the byte before is the right one for every frame. Takes at most @max + 1
 * steps of at most 4 reads each. Blocks only if @read does.
 */
size_t unwind_walk(const struct unwinder *u, const struct unwind_regs *regs, taddr_t *ips, size_t max,
		   enum stack_end *end);

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Breakpoints in one address space: where they stand, what is under them, what they are for. */
#pragma once

#include "arch/cpu.h"
#include "fallback/probe.h"

enum { PLACES_AT_ONE = 32 }; /* functions may share the code that they end in: ten of mimalloc do */

/* What is to be done at a place. */
struct place_use {
	u32 probe;
	u32 kind; /* enum place_kind */
};

struct breakpoint {
	taddr_t addr;		     /* without the mark of Thumb code; 0 = unused */
	u8 original[CPU_CODE_BYTES]; /* code as it was; bytes of other breakpoints replaced by theirs */
	u8 nr_original;		     /* bytes that could be read */
	u8 length;		     /* of the breakpoint */
	u8 code[CPU_BREAKPOINT_BYTES];
	bool is_thumb;
	u8 nr_uses;
	struct place_use uses[PLACES_AT_ONE]; /* sorted by kind */
};

/* A hash table of breakpoints by address. */
struct places {
	const struct cpu *cpu;
	int mem_fd;		  /* /proc/PID/mem; borrowed */
	struct breakpoint *table; /* owned */
	size_t nr, nr_slots;	  /* slots: a power of two, or 0 */
	taddr_t *ghosts; /* owned; where breakpoints were: threads may still report having hit them */
	size_t nr_ghosts;
};

void places_init(struct places *p, const struct cpu *cpu, int mem_fd);
/* Forgets; the code stays as it is. */
void places_fini(struct places *p);

/* All of @from, for a copy of its memory: @p is initialized and empty. 0 or -ENOMEM. */
int places_copy(struct places *p, const struct places *from) __must_check;

/*
 * Put a breakpoint in, or use the one that is there for one thing more; the process may run. -EEXIST: somebody
 * else's breakpoint is there; -EFAULT, -EIO: the code cannot be read or written; -ENOSPC, -ENOMEM.
 */
int places_add(struct places *p, const struct place *place) __must_check;

/* The breakpoint at @addr, NULL if there is none. Valid until the next change. */
struct breakpoint *places_find(const struct places *p, taddr_t addr);

/* Was there one? */
bool places_is_ghost(const struct places *p, taddr_t addr);

/* Take one use away, and the breakpoint with the last. */
void places_remove(struct places *p, taddr_t addr, u32 kind, u32 probe);

/* Forget those in [@start, @end): the code is put back where our breakpoint still is in it. */
void places_remove_range(struct places *p, taddr_t start, taddr_t end);

/*
 * Breakpoints that somebody has taken out of the code that is the program's (the kernel, with a uprobe of others at the
 * same place) are put in again; their number.
 */
u32 places_repair(const struct places *p);

/* Put all code back, through @mem_fd (of the process itself or of a copy of it). What is known of them stays. */
void places_clean(const struct places *p, int mem_fd);

/* Code at @addr as the program has it, without breakpoints; bytes read, 0 if none can be. */
size_t places_read_code(const struct places *p, taddr_t addr, u8 *code, size_t len);

/* For a step of the program itself over it: the code under the breakpoint is put back, and in again. 0 or -errno. */
int places_lift(const struct places *p, const struct breakpoint *b) __must_check;
int places_lower(const struct places *p, const struct breakpoint *b) __must_check;

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Breakpoints in one address space: their addresses, the code under them, their purposes. */
#pragma once

#include "arch/cpu.h"
#include "fallback/probe.h"
#include "user/lib/hash_index.h"

/* Functions may share the code that they end in: more than 32 of mimalloc 3 do. */
enum { PLACES_AT_ONE = IS_AGENT ? 32 : 128 };

/* One purpose of a breakpoint. */
struct place_use {
	u32 probe;
	u32 kind; /* enum place_kind */
};

struct breakpoint {
	taddr_t addr;		     /* without the mark of Thumb code */
	u8 original[CPU_CODE_BYTES]; /* the code of the program, without any breakpoints */
	u8 nr_original;		     /* bytes that could be read */
	u8 length;		     /* of the breakpoint */
	u8 code[CPU_BREAKPOINT_BYTES];
	bool is_thumb;
	u8 nr_uses;
	struct place_use uses[PLACES_AT_ONE]; /* sorted by kind */
};

struct places {
	const struct cpu *cpu;
	struct cpu_memory memory; /* the code of the process */
	struct breakpoint *list;  /* owned */
	size_t nr, max;
	struct hash_index index; /* numbers in list, by address */
	taddr_t *ghosts; /* owned; addresses of former breakpoints: threads may still report a hit of one */
	size_t nr_ghosts, max_ghosts;
};

/* @memory: of fallback/code_memory.h. */
void places_init(struct places *p, const struct cpu *cpu, struct cpu_memory memory);
/* Frees the table; the code of the process stays as it is. */
void places_fini(struct places *p);

/* Take over all breakpoints of @from, whose memory was copied. @p is initialized and empty. 0 or -ENOMEM. */
int places_copy(struct places *p, const struct places *from) __must_check;

/*
 * Put a breakpoint in, or add a purpose to the one that is there. The process may run. -EEXIST: there is a breakpoint
 * of somebody else's; -EFAULT, -EIO: the code cannot be read or written; -ENOSPC, -ENOMEM.
 */
int places_add(struct places *p, const struct place *place) __must_check;

/* The breakpoint at @addr, or NULL. Valid until the next change. */
struct breakpoint *places_find(const struct places *p, taddr_t addr);

/* Is there a breakpoint for this purpose? */
bool places_have(const struct places *p, u32 kind);

/* Is our breakpoint at @addr, which may have the mark of Thumb code, still in the code? */
bool places_is_in_code(const struct places *p, taddr_t addr);

/*
 * A thread with @regs has reported SIGTRAP. True: it has hit our breakpoint at *@addr, which may have been taken out
 * meanwhile; its pc in @regs is set back to the breakpoint.
 */
bool places_hit(const struct places *p, struct cpu_regs *regs, taddr_t *addr);

/* @pc without the mark of Thumb code. */
taddr_t places_address(const struct places *p, taddr_t pc);

/* Take one purpose away. The breakpoint is taken out together with its last purpose. */
void places_remove(struct places *p, taddr_t addr, u32 kind, u32 probe);

/* Forget the breakpoints in [@start, @end). Code that still has our breakpoint in it is put back. */
void places_remove_range(struct places *p, taddr_t start, taddr_t end);

/*
 * Put breakpoints in again that somebody else has taken out: the kernel does so when a uprobe of others at the same
 * place ends. Returns how many.
 */
u32 places_repair(const struct places *p);

/* Put all code back in @memory, of the process or of a copy of it. The breakpoints stay in the table. */
void places_clean(const struct places *p, const struct cpu_memory *memory);

/* Read code at @addr without our breakpoints. Returns the bytes read, 0 if the code cannot be read. */
size_t places_read_code(const struct places *p, taddr_t addr, u8 *code, size_t len);

/* Put the code under @b back, so that the program can step over it; then put the breakpoint in again. 0 or -errno. */
int places_lift(const struct places *p, const struct breakpoint *b) __must_check;
int places_lower(const struct places *p, const struct breakpoint *b) __must_check;

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Why a block has its verdict: who holds it, or who lost it. */
#pragma once

#include "user/scan.h"

/* Kinds of roots. */
enum scan_root_kind { ROOT_NONE, ROOT_MEMORY, ROOT_REGISTER, ROOT_KERNEL };

/* Where a chain begins. */
struct scan_root {
	enum scan_root_kind kind;
	taddr_t addr; /* ROOT_MEMORY: of the word */
	const struct snapshot_map
		*map; /* ROOT_MEMORY: borrowed from the snapshot; its path and file_offset name it */
	pid_t tid; /* ROOT_REGISTER; ROOT_MEMORY: in whose stack or memory by the thread pointer it is, or 0 */
	taddr_t tp;	  /* ROOT_MEMORY with a tid: that thread's pointer, 0 = unknown */
	const char *name; /* what another machine calls map or register; borrowed, NULL = none */
	u32 where; /* ROOT_REGISTER: for arch_reg_name(); ROOT_KERNEL: descriptor, UINT32_MAX a timer */
};

struct scan_step {
	taddr_t addr;
	u64 size;
	u64 offset; /* where in this block the pointer to it points; 0 = start */
};

/* A chain; free() it. */
struct scan_chain {
	struct scan_root root; /* ROOT_NONE: lost, steps[0] is the head; or the root was not kept */
	size_t nr;
	struct scan_step steps[]; /* the last one is the block asked about */
};

/* Questions to one scan, one after the other: what an answer had to search the next one need not. */
struct scan_whys;

/*
 * @s has been judged, and must stay. *@out is owned by the caller: scan_whys_free(). 0 or -ENOMEM. Takes 8 bytes per
 * block.
 */
int scan_whys_new(struct scan_whys **out, struct scan *s) __must_check;
void scan_whys_free(struct scan_whys *w);

/*
 * Why the block at @addr (or around it) has its verdict: a short chain, from a global variable if there is one, else
 * from words of the kernel, stacks, registers. *@out is owned by the caller. 0; -ENOENT no such block or no chain
 * known; -ENOMEM.
 */
int scan_whys_find(struct scan_whys *w, taddr_t addr, struct scan_chain **out) __must_check;

/* The same for one question. */
int scan_why(struct scan *s, taddr_t addr, struct scan_chain **out) __must_check;

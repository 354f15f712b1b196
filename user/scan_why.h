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
	pid_t tid;    /* ROOT_REGISTER; ROOT_MEMORY: whose stack it is, or 0 */
	u32 where;    /* ROOT_REGISTER: for arch_reg_name(); ROOT_KERNEL: descriptor, UINT32_MAX a timer */
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

/*
 * Why the block at @addr has its verdict. *@out is owned by the caller. 0; -ENOENT no such block or no
 * chain known; -ENOMEM. Uses 8 bytes per block meanwhile.
 */
int scan_why(struct scan *s, taddr_t addr, struct scan_chain **out) __must_check;

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Who holds a block, or lost it: chains of pointers kept for reports, when process and snapshot have gone. */
#pragma once

#include "user/scan_why.h"

struct heap;
struct leaks;
struct leaks_options;

enum { WHY_MAX_STEPS = 32, WHY_NO_ROW = UINT32_MAX };

/* A block of the chain, or several of one caller that follow each other; then the last of them is described. */
struct why_step {
	taddr_t addr;
	u64 size;
	u64 offset; /* where in this block the pointer to it points; 0 = start */
	u64 nr;	    /* blocks */
	u32 row;    /* who allocated it, WHY_NO_ROW = unknown */
};

/* Why one block has its verdict. */
struct leak_why {
	u32 row; /* who allocated it, WHY_NO_ROW = there is no block at addr */
	enum scan_verdict verdict;
	taddr_t addr;
	u8 word_size;
	/* Where the chain begins, as struct scan_root. */
	enum scan_root_kind root;
	taddr_t root_addr, root_tp;
	pid_t root_tid;
	u32 root_where;
	/* Owned; of the mapping, "" = anonymous. Of a register of another machine its name. Else NULL. */
	char *root_path;
	struct why_step *steps; /* owned; the last one is the block itself; at most WHY_MAX_STEPS */
	size_t nr_steps;	/* 0 = no chain is known */
	u64 nr_left_out;	/* blocks between the first half of the steps and the second */
};

/*
 * Fill in @l->whys and @l->asked as @options ask for it, from a scan with verdicts whose snapshot is still there.
 * 0 or -ENOMEM.
 */
int leaks_find_whys(struct leaks *l, struct scan *scan, const struct leaks_options *options) __must_check;

/* The example of row @row, NULL if there is none. */
const struct leak_why *leaks_why(const struct leaks *l, u32 row);

void leak_why_fini(struct leak_why *why);

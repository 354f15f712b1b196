/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Chains of pointers that say who holds a block or lost it. Kept for reports, after process and snapshot are gone. */
#pragma once

#include "user/scan/scan_why.h"

struct leaks;
struct leaks_options;

enum { WHY_MAX_STEPS = 32, WHY_NO_ROW = UINT32_MAX };

/* One block of the chain. Several blocks of one caller in a row are one step, which describes the last of them. */
struct why_step {
	taddr_t addr;
	u64 size;
	u64 offset; /* bytes from the start of this block to where the pointer points */
	u64 nr;	    /* blocks in a row */
	u32 row;    /* caller that allocated it, WHY_NO_ROW = unknown */
};

/* Why one block has its verdict. */
struct leak_why {
	u32 row; /* caller that allocated it, WHY_NO_ROW = no block is at addr */
	enum scan_verdict verdict;
	taddr_t addr;
	u8 word_size;
	/* The root at which the chain begins: struct scan_root. */
	enum scan_root_kind root;
	taddr_t root_addr, root_tp;
	pid_t root_tid;
	u32 root_where;
	/* Owned; path of the mapping, "" = anonymous; name of the register if another machine scanned; or NULL. */
	char *root_path;
	struct why_step *steps; /* owned; at most WHY_MAX_STEPS; the last one is the block itself */
	size_t nr_steps;	/* 0 = the chain is not known */
	u64 nr_left_out;	/* blocks left out between the first half of the steps and the second half */
};

/*
 * Fill in @l->whys and @l->asked as @options ask for them. @scan has verdicts, and its snapshot still exists.
 * 0 or -ENOMEM.
 */
int leaks_find_whys(struct leaks *l, struct scan *scan, const struct leaks_options *options) __must_check;

/* The example of row @row, or NULL. */
const struct leak_why *leaks_why(const struct leaks *l, u32 row);

void leak_why_fini(struct leak_why *why);

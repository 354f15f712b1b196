/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Follow pointers between lost blocks, whatever shape they make. For user/scan/scan*.c only. */
#pragma once

#include "user/scan/scan_state.h"

/* Which blocks a walk enters, and what it writes to them. All follow each pointer to a block without a verdict. */
enum walk_kind {
	WALK_MARK,   /* enter blocks that are not marked, and mark them */
	WALK_UNMARK, /* enter marked blocks, and clear the mark */
	WALK_CLAIM,  /* give them a verdict, and the leader as link */
};

enum { WALK_BLOCKS = 16, WALK_TARGETS = 32 };

/* A walk mostly waits for memory, so it loads blocks ahead and follows others meanwhile. */
struct lost_walk {
	struct scan *s;
	enum walk_kind kind;
	enum scan_verdict verdict;
	u32 leader; /* WALK_CLAIM */
	u32 top;    /* of the stack of blocks to follow, linked by link: needs no memory and no recursion */
	u32 blocks[WALK_BLOCKS]; /* being loaded, to be followed next */
	u32 first_block, nr_blocks;
	u32 targets[WALK_TARGETS]; /* being loaded, to be entered next */
	u32 first_target, nr_targets;
};

void walk_init(struct lost_walk *wk, struct scan *s, enum walk_kind kind, enum scan_verdict verdict);

/* Follow @block, which has its verdict or mark already, and all blocks that it leads to. */
void walk_from(struct lost_walk *wk, u32 block);

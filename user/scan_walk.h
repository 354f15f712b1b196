/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Follow pointers between lost blocks, whatever shape they make. For user/scan*.c only. */
#pragma once

#include "user/scan_state.h"

/* Which blocks a walk goes on to, and what it leaves in them. */
enum walk_kind {
	WALK_MARK,   /* along all pointers to blocks without verdict: is_marked, where it is not yet */
	WALK_UNMARK, /* the same: not is_marked, where it is */
	WALK_CLAIM,  /* the same: verdict, and the leader as link */
};

enum { WALK_BLOCKS = 16, WALK_TARGETS = 32 };

/* Where memory is awaited, other blocks are followed meanwhile: waiting for it is all that a walk does. */
struct walk {
	struct scan *s;
	enum walk_kind kind;
	enum scan_verdict verdict;
	u32 leader; /* WALK_CLAIM */
	u32 top;    /* of the blocks still to follow, linked through themselves: no memory, no recursion */
	u32 blocks[WALK_BLOCKS]; /* soon to be followed */
	u32 first_block, nr_blocks;
	u32 targets[WALK_TARGETS]; /* soon to be looked at */
	u32 first_target, nr_targets;
};

void walk_init(struct walk *wk, struct scan *s, enum walk_kind kind, enum scan_verdict verdict);

/* Follow @block, which has its verdict or mark already, and all that it leads to. */
void walk_from(struct walk *wk, u32 block);

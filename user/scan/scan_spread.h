/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Give a verdict to blocks and to all blocks that they lead to. For user/scan/scan*.c only. */
#pragma once

#include "user/scan/scan_state.h"

enum { SPREAD_WORD = 64 }; /* blocks of a word of bits */

/* One for all verdicts of a scan: a block with a verdict is not followed again. Takes 3 bits per block. */
struct spread {
	struct scan *s;
	u64 *seen, *waiting; /* owned; one bit per block */
	u64 *judged;	     /* owned; what was seen when the last verdict was given */
	u32 nr_waiting;	     /* bits set in waiting */
	u32 depth;	  /* of the stack of blocks to follow, which lies in the links of the first blocks */
	u32 limit;	  /* most blocks on the stack */
	u32 nr_possible;  /* blocks that were judged so */
	bool only_starts; /* follow only pointers to starts of blocks */
};

/* 0 or -ENOMEM. */
int spread_init(struct spread *sp, struct scan *s) __must_check;
void spread_fini(struct spread *sp);

/*
 * Give @verdict to all blocks that have one of @flags and no verdict yet, and to all blocks without a verdict that
 * they lead to. SCAN_REACHABLE follows only pointers to starts; other pointers set BLOCK_SEED. Overwrites the links of
 * blocks. 0 or -ECANCELED.
 */
int spread_from(struct spread *sp, u32 flags, enum scan_verdict verdict) __must_check;

/* Take the possible verdicts back. */
void spread_undo_possible(struct spread *sp);

/*
 * The bits of the blocks of @word, from word * SPREAD_WORD on, that nothing has led to yet: after the last verdict, the
 * lost ones. There are spread_words() words.
 */
u64 spread_unseen(const struct spread *sp, u32 word);
u32 spread_words(const struct spread *sp);

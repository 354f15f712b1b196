/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Give a verdict to blocks and to all blocks that they lead to. For user/scan/scan*.c only. */
#pragma once

#include "user/scan/scan_state.h"

enum { SPREAD_WORD = 64 }; /* blocks of a word of bits */

/* One for all verdicts of a scan: a block with a verdict is not followed again. Takes 3 bits per block. */
struct spread {
	struct scan *s;
	u64 *seen, *waiting; /* owned; one bit per block */
	u64 *judged;	     /* owned; what was seen before the verdict that is pending */
	u16 *notes;	     /* owned; by block: spread_note(). NULL: not wanted */
	u32 nr_waiting;	     /* bits set in waiting */
	u32 depth; /* of the stack of blocks to follow, which lies in the links of the first blocks */
	u32 limit; /* most blocks on the stack */
	enum scan_verdict pending; /* of the blocks that were seen since judged; not yet in them */
	bool only_starts;	   /* follow only pointers to starts of blocks */
};

/* 0 or -ENOMEM. spread_fini() also after an error. */
int spread_init(struct spread *sp, struct scan *s) __must_check;
void spread_fini(struct spread *sp);

/*
 * Give @verdict to all blocks that have one of @flags and no verdict yet, and to all blocks without a verdict that
 * they lead to. SCAN_REACHABLE follows only pointers to starts; other pointers set BLOCK_SEED. Overwrites the links of
 * blocks. 0 or -ECANCELED. The blocks have the verdict after the next spread_from() with another one, which
 * may be SCAN_NONE without flags.
 */
int spread_from(struct spread *sp, u32 flags, enum scan_verdict verdict) __must_check;

/* The blocks of the pending verdict have none again. */
void spread_forget(struct spread *sp);

/*
 * The bits of the blocks of @word, from word * SPREAD_WORD on, that nothing has led to yet: after the last verdict, the
 * lost ones. There are spread_words() words.
 */
u64 spread_unseen(const struct spread *sp, u32 word);
u32 spread_words(const struct spread *sp);

/* The bits of the blocks of the pending verdict, in the same way. */
static inline u64 spread_pending(const struct spread *sp, u32 word)
{
	return sp->seen[word] & ~sp->judged[word];
}

/*
 * A pointer leads to @offset in @block, from a root or from a reachable or possible block. The lowest offset is kept:
 * as its distance from the highest one that there is room for, so that 0 means none.
 */
static inline void spread_note(struct spread *sp, u32 block, u64 offset)
{
	u16 note = offset < UINT16_MAX ? (u16)(UINT16_MAX - offset) : 1;

	sp->notes[block] = note > sp->notes[block] ? note : sp->notes[block];
}

/* The lowest offset in @block, or UINT32_MAX. */
static inline u32 spread_lowest(const struct spread *sp, u32 block)
{
	return sp->notes[block] ? (u32)UINT16_MAX - sp->notes[block] : UINT32_MAX;
}

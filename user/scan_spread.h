/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Give a verdict to blocks and to all that they lead to. For user/scan*.c only. */
#pragma once

#include "user/scan_state.h"

/* One for all verdicts of a scan: what has one is not looked at again. A quarter of a byte per block. */
struct spread {
	struct scan *s;
	u64 *seen, *waiting; /* owned; a bit for each block */
	u32 nr_waiting;	     /* bits set in waiting */
	u32 depth;	     /* of the stack, which lies in the links of the first blocks */
	u32 limit;	     /* so many on the stack are too many */
	bool only_starts;
};

/* 0 or -ENOMEM. */
int spread_init(struct spread *sp, struct scan *s) __must_check;
void spread_fini(struct spread *sp);

/*
 * @verdict for all blocks with one of @flags that have none, and for those without one that they lead to:
 * SCAN_REACHABLE along pointers to starts only; pointers elsewhere leave BLOCK_SEED. Overwrites the links of blocks.
 */
void spread_from(struct spread *sp, u32 flags, enum scan_verdict verdict);

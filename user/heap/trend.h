/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Does a process grow? Compares the least live bytes of the last third of the time with those of the third before. */
#pragma once

#include "user/lib/types.h"

/*
 * The least, because blocks that come and go say nothing: a leak raises the bytes that are always live. The first third
 * is ignored, because programs start up in it, and after an attach their older blocks are not known.
 */

enum { TREND_SLOTS = 96 };

/* All zero: empty. */
struct trend {
	u64 start_ns;		/* of slot 0 */
	u64 slot_ns;		/* length of a slot; doubles when all slots are in use */
	u64 slot_end_ns;	/* of the slot that is being filled */
	u64 last;		/* live bytes that were added last */
	u32 nr;			/* slots in use; the last one is being filled */
	u64 least[TREND_SLOTS]; /* least live bytes of each slot */
};

struct trend_growth {
	u64 before, after; /* least live bytes of the second third, and of the last */
	u64 span_ns;	   /* length of a third */
};

/* Begin the slot of @now_ns. For trend_add() only. */
void trend_go_on(struct trend *t, u64 now_ns);

/* @bytes are live from @now_ns on, which never decreases. Call it for each event: equal events make equal trends. */
static inline void trend_add(struct trend *t, u64 now_ns, u64 bytes)
{
	if (now_ns >= t->slot_end_ns)
		trend_go_on(t, now_ns);
	t->last = bytes;
	if (bytes < t->least[t->nr - 1])
		t->least[t->nr - 1] = bytes;
}

/* False if the trend covers less than a second. */
bool trend_growth(const struct trend *t, struct trend_growth *out);

/* The growth in tenths of a percent, at most UINT32_MAX. */
u32 trend_permille(const struct trend_growth *g);

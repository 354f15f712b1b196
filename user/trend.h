/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Does a process grow? The least that was live in the last third of the time, next to the third before. */
#pragma once

#include "user/lib/types.h"

/*
 * The least of each third, because what comes and goes says nothing: a leak raises what is always there. The first
 * third is where programs set themselves up, and where nothing is known yet of one that was attached to.
 */

enum { TREND_SLOTS = 96 };

/* Zeros are an empty one. */
struct trend {
	u64 start_ns;		/* of slot 0 */
	u64 slot_ns;		/* each slot's time; doubles when all are in use */
	u64 slot_end_ns;	/* of the one that is being filled */
	u64 last;		/* bytes, since what was added last */
	u32 nr;			/* in use; the last one is being filled */
	u64 least[TREND_SLOTS]; /* bytes live */
};

struct trend_growth {
	u64 before, after; /* bytes: the least of the second third and of the last */
};

/* See trend_add(). */
void trend_go_on(struct trend *t, u64 now_ns);

/* @bytes are live from @now_ns on, which never goes back. For each event: the same events make the same trend. */
static inline void trend_add(struct trend *t, u64 now_ns, u64 bytes)
{
	if (now_ns >= t->slot_end_ns)
		trend_go_on(t, now_ns);
	t->last = bytes;
	if (bytes < t->least[t->nr - 1])
		t->least[t->nr - 1] = bytes;
}

/* False if less than a second has been seen. */
bool trend_growth(const struct trend *t, struct trend_growth *out);

/* Tenths of a percent; UINT32_MAX for more. */
u32 trend_permille(const struct trend_growth *g);

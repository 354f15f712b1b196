/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The live bytes of a process over time, in at most TIMELINE_MAX points. The heap fills it event by event. */
#pragma once

#include "user/lib/types.h"

enum { TIMELINE_MAX = 1024, TIMELINE_FEW = 256 };

/* A slot of time with at least one event. */
struct timeline_point {
	u64 time_ns;		     /* of its last event, CLOCK_MONOTONIC */
	u64 live_bytes, live_blocks; /* at that time */
	u64 min_bytes, max_bytes;    /* of live bytes since the point before, exact */
};

/*
 * All slots have one length, a power of two in nanoseconds, and only those with events become points. When there are
 * too many points, or no memory for one more, the length doubles and neighbours merge. All zero but the budget: empty.
 */
struct timeline {
	u64 end_ns;		  /* of the slot that is being filled; 0 = none yet */
	u64 min_bytes, max_bytes; /* in that slot so far */
	u64 start_ns;		  /* of the first slot */
	u32 shift;		  /* a slot is 1 << shift ns long */
	u32 nr, max;
	bool has_few; /* at most TIMELINE_FEW points: thousands of sampled processes are traced for months */
	struct timeline_point *points; /* owned; of the slots that are over */
	struct budget *budget;	       /* borrowed */
};

void timeline_init(struct timeline *t, struct budget *budget);
void timeline_fini(struct timeline *t);

/* Make @t a copy of @from that counts in @budget. 0 or -ENOMEM. */
int timeline_copy(struct timeline *t, const struct timeline *from, struct budget *budget) __must_check;

/* Forget all points. The next event begins the first slot, with 0 live bytes. */
void timeline_reset(struct timeline *t);

/*
 * Begin the slot of @now_ns, which is not before end_ns. @last has the time of the last event before it, and the live
 * bytes and blocks now. Lack of memory loses points, but never a minimum or maximum.
 */
void timeline_go_on(struct timeline *t, u64 now_ns, struct timeline_point last);

/*
 * Point @i, from 0. The slot that is being filled is the last point; @last has its time, live bytes and blocks. False:
 * there is no such point.
 */
bool timeline_point(const struct timeline *t, size_t i, struct timeline_point last,
		    struct timeline_point *out);

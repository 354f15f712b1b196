/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Does a process grow, how fast, and how sure is that? A line through what it needed in the last minute or hour. */
#pragma once

#include "user/lib/types.h"

enum { GROWTH_POINTS = 60 };

/* The least that was needed in each of the last slots. The least, because memory that comes and goes says nothing. */
struct growth_window {
	u32 time_ds[GROWTH_POINTS]; /* tenths of a second since the watch began */
	u32 kib[GROWTH_POINTS];
	u32 slot_end_ds; /* of the point that is being filled */
	u32 nr, next;	 /* points in use; where the next one goes */
};

/* All zero: no points yet. */
struct growth {
	struct growth_window minute, hour;
};

/* The line through the points of one window. */
struct growth_line {
	double bytes_per_s;
	double error_per_s; /* the rate is within twice this, 19 times of 20 */
	u64 rise_bytes;	    /* of the line over its window; 0 if it falls */
	u64 time_ns;	    /* that the points cover */
	u32 nr;		    /* points */
	bool is_sure;	    /* it grows: no chance, and no steady up and down */
};

/* @bytes are needed at @time_ds, which never decreases. */
void growth_add(struct growth *g, u32 time_ds, u64 bytes);

/* False: it surely does not grow, and the line need not be computed. Costs little. */
bool growth_is_possible(const struct growth *g);

/* The line of the window that knows the rate best. With less than two points all zero. */
struct growth_line growth_estimate(const struct growth *g);

/* When it last needed as little as ever in its hour: since then it grows. In tenths of a second. */
u32 growth_since(const struct growth *g);

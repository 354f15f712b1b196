/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Parts of memory that an allocator cuts into slots of one size, or gives out whole. */
#pragma once

#include "user/census/census_walk.h"

struct census_run {
	taddr_t start, end;
	taddr_t first; /* of the slots */
	taddr_t books; /* where the allocator describes it */
	u64 slot;      /* bytes */
	u32 nr;	       /* slots; 0 = no block lies here */
	u32 arena;     /* index in census_blocks.arenas */
	bool is_cut;   /* into slots, some of which may be free */
};

/* Plain data. All zero: empty. */
struct census_runs {
	struct census_run *of; /* owned */
	size_t nr, max;
	size_t nr_damaged; /* descriptions that cannot be right */
};

void census_runs_fini(struct census_runs *r);
int census_runs_add(struct census_runs *r, const struct census_run *run) __must_check; /* 0 or -ENOMEM */

/* Adds the blocks of @run by census_enter_block(), upwards. 0 or -errno, which ends the walk. */
typedef int census_enter_fn(void *ctx, const struct census_run *run);

/*
 * Sort the runs, and make a segment of each with its blocks. A run that begins within another is noted and left out. 0,
 * -ENOMEM, -ETIME, or what @enter returns.
 */
int census_runs_enter(struct census_runs *r, struct census_walk *w, census_enter_fn *enter,
		      void *ctx) __must_check;

/* Add a live block, with its type. 0, -ENOMEM or -EOVERFLOW. */
int census_enter_block(struct census_walk *w, taddr_t addr, u64 size) __must_check;

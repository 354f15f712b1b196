/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Live blocks made by mmap and mremap, for heap.c: whole ranges of them can be released at once, or parts. */
#pragma once

#include "user/budget.h"

/* What one mmap made. While it lives it has one piece or, once split by munmap, several. */
struct region {
	u64 time_ms;
	u32 row;
	u32 epoch;
	u32 nr_pieces; /* 0 = not in use */
	u32 next_free; /* index + 1 */
};

/* A range of addresses that is left of a region. */
struct region_piece {
	taddr_t start, end;
	u32 region; /* index */
};

/* Plain data; only region_table.c writes it. Pieces never overlap. */
struct region_table {
	struct region_piece *pieces; /* owned; from the highest address down, since mmap goes down too */
	size_t nr_pieces, max_pieces;
	struct region *regions; /* owned */
	size_t nr_regions, max_regions;
	u32 first_free;	       /* index + 1 of a region not in use */
	struct budget *budget; /* borrowed */
};

/* A part that left the table: @bytes of the region @region, which is gone as a whole when @is_last. */
typedef void region_visit(void *ctx, const struct region *region, u64 bytes, bool is_last);

/* An empty table; takes no memory yet. @budget must outlive it. */
void region_table_init(struct region_table *t, struct budget *budget);
void region_table_fini(struct region_table *t);
/* Make *@out, not initialized before, a copy with memory from @budget. 0 or -ENOMEM. */
int region_table_copy(struct region_table *out, const struct region_table *t,
		      struct budget *budget) __must_check;

/* Make sure that the next add, cut or take, and a put after a take, need no memory. 0 or -ENOMEM. */
int region_table_reserve(struct region_table *t) __must_check;

/* Add a region of one piece; its range must be free. Needs a reserve. */
void region_table_add(struct region_table *t, taddr_t start, taddr_t end, const struct region *region);

/* Remove all that lies in [@start, @end); @visit learns of each piece that lost bytes. Needs a reserve. */
void region_table_cut(struct region_table *t, taddr_t start, taddr_t end, region_visit *visit, void *ctx);

/*
 * Take the piece that holds @addr out, from @addr to its end, into *@out, which still counts as a piece of
 * its region: settle it by region_table_put() or region_table_release(). False if @addr is in none. Needs a
 * reserve.
 */
bool region_table_take(struct region_table *t, taddr_t addr, struct region_piece *out);

/* Put a piece taken before back. False, and nothing done, if its range is no longer free. Needs a reserve. */
bool region_table_put(struct region_table *t, const struct region_piece *piece);

/* Give up a piece taken before. True if it was the last one of its region: that is then gone. */
bool region_table_release(struct region_table *t, const struct region_piece *piece);

/* The piece that holds @addr, or NULL. */
const struct region_piece *region_table_find(const struct region_table *t, taddr_t addr);

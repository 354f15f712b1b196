/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Live blocks made by mmap and mremap, for user/heap/heap.c. munmap may release several at once, or parts of them. */
#pragma once

#include "user/heap/budget.h"

/* The block that one mmap made. A live one has one piece, or several after munmap has split it. */
struct heap_region {
	u64 order; /* as that of blocks */
	u32 row;
	u32 epoch : 6;
	u32 thread : 12; /* row of the thread table, or THREADS_MAX */
	u32 nr_pieces;	 /* 0 = this entry is not in use */
	u32 next_free;	 /* index + 1 of the next entry that is not in use */
};

/* One range of addresses that is left of a region. */
struct region_piece {
	taddr_t start, end;
	u32 region; /* index */
};

/* Plain data. Only user/heap/region_table.c writes it. Pieces never overlap. */
struct region_table {
	struct region_piece *
		pieces; /* owned; by address, the highest first, because the kernel gives out mappings in that order */
	size_t nr_pieces, max_pieces;
	struct heap_region *regions; /* owned */
	size_t nr_regions, max_regions;
	u32 first_free;	       /* index + 1 of an entry that is not in use */
	struct budget *budget; /* borrowed */
};

/* @bytes of @region left the table. @is_last: they were the last bytes of the region. */
typedef void region_visit(void *ctx, const struct heap_region *region, u64 bytes, bool is_last);

/* Make an empty table, which takes no memory yet. @budget must outlive it. */
void region_table_init(struct region_table *t, struct budget *budget);
void region_table_fini(struct region_table *t);
/* Make *@out, which is not initialized, a copy with memory from @budget. 0 or -ENOMEM. */
int region_table_copy(struct region_table *out, const struct region_table *t,
		      struct budget *budget) __must_check;

/* Reserve memory for the next add, cut or take, and for a put after a take. 0 or -ENOMEM. */
int region_table_reserve(struct region_table *t) __must_check;

/* Add a region of one piece, whose range must be free. Needs region_table_reserve(). */
void region_table_add(struct region_table *t, taddr_t start, taddr_t end, const struct heap_region *region);

/* Remove all bytes in [@start, @end). @visit is called for each piece that lost bytes. Needs region_table_reserve(). */
void region_table_cut(struct region_table *t, taddr_t start, taddr_t end, region_visit *visit, void *ctx);

/*
 * Take the piece that contains @addr out, from @addr to its end, into *@out. The piece still counts for its
 * region: end that by region_table_put() or region_table_release(). False if no piece contains @addr. Needs
 * region_table_reserve().
 */
bool region_table_take(struct region_table *t, taddr_t addr, struct region_piece *out);

/* Put back a piece that was taken. False if its range is used again: nothing is done. Needs region_table_reserve(). */
bool region_table_put(struct region_table *t, const struct region_piece *piece);

/* Release a piece that was taken. True if it was the last one of its region. */
bool region_table_release(struct region_table *t, const struct region_piece *piece);

/* The piece that contains @addr, or NULL. */
const struct region_piece *region_table_find(const struct region_table *t, taddr_t addr);

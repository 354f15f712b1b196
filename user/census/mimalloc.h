/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The books of mimalloc from 1.8 on, 64 bits, as built without its secure mode. For user/census/mimalloc*.c only. Those
 * of versions 1 and 3 are in user/scan/mimalloc_map.h.
 *
 * In version 2 memory comes in segments, aligned to 32 MiB. A segment begins with its books: a cookie, then an entry
 * for each slice of 64 KiB. Slices that belong together are a page, whose first entry describes it: blocks of one size,
 * three lists of free blocks. The cookie is the address of the segment, disguised by a number in the data of the
 * library: so each segment is proved by all others and by this number.
 */
#pragma once

#include "user/census/census_runs.h"
#include "user/scan/mimalloc_layout.h"
#include "user/scan/mimalloc_map.h"

struct mimalloc_segment {
	taddr_t addr;
	u64 nr_slices; /* more than MIMALLOC_NR_SLICES for one huge block */
	u32 nr_info;   /* slices that its books take */
	u32 nr_entries;
};

/* A page, as its first entry describes it. */
struct mimalloc_page {
	u64 nr_slices;
	u32 capacity; /* blocks that were ever prepared */
	u32 reserved; /* blocks that have room */
	u32 used;     /* also those in two of the lists of free blocks */
	u64 block;    /* bytes; 0 = the slices are free */
	taddr_t first, end;
	taddr_t lists[3], heap;
	taddr_t arena;	  /* of a page in the map */
	bool has_aligned; /* programs may have addresses within blocks, which begin there for them */
};

struct mimalloc {
	struct census_walk *w;
	const struct mimalloc_layout *layout; /* NULL: it is the map that has all pages */
	struct mimalloc_map map;
	taddr_t arena, arena_at, arena_end; /* of the last page; what follows on the pages so far */
	u64 disguise;
	struct mimalloc_segment *segments; /* owned; by address */
	size_t nr_segments, max_segments;
	struct census_runs runs;
	taddr_t *heaps; /* owned; of threads */
	size_t nr_heaps, max_heaps;
	size_t nr_damaged;
};

/* user/census/mimalloc_find.c */
/* Find all segments of m->layout. 0, -ENOENT, -ENOMEM or -ETIME. */
int mimalloc_find(struct mimalloc *m) __must_check;

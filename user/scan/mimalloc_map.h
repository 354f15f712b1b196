/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The pages of blocks of mimalloc from 1.8 on, 64 bits, as built without its secure mode. For user/scan/ and
 * user/census/.
 *
 * Versions 1 and 2 have segments: of 4 MiB with pages of 64 KiB, 512 KiB or 4 MiB; of 32 MiB with slices of 64 KiB,
 * some of which together are a page. They begin with books: a header, then an entry for each page or slice. The header
 * has a cookie, which is the address of the segment, disguised by a random number of 64 bits in the data of the
 * library: so each segment is proved by all others and by this number.
 *
 * Version 3 has a map of all pages, of two levels. Its root has a word for each 512 MiB of addresses, which leads to a
 * table with a word for each 64 KiB: the description of the page of blocks that begins there or goes on there. A
 * pointer in the data of the library leads to the root, whose first word is the table behind its own end.
 *
 * Pages have blocks of one size and three lists of free ones.
 */
#pragma once

#include "user/scan/page_reader.h"

enum { MIMALLOC_MAX_COPIES = 8 }; /* in one process */

/* All zero before the first mimalloc_map_find(). */
struct mimalloc_map {
	struct page_reader top, sub, page;
	const struct mimalloc_layout *layout;
	taddr_t root;
	u64 nr_entries, nr_looks, disguise;
	size_t nr_right, nr_wrong; /* pages, when a layout is tried */
	u32 nr_tries;		   /* numbers that were searched in data since */
	u64 known[MIMALLOC_MAX_COPIES],
		secret; /* disguises and roots that were found; a disguise that is in data */
	u32 nr_known;
};

/* A page of blocks; without books: memory at the beginning of a segment that has the books of its pages. */
struct mimalloc_map_run {
	taddr_t start, end, books;
};

struct mimalloc_map_page {
	taddr_t first, end; /* of the blocks; of the page */
	u64 slot;
	u32 capacity, reserved, used;
	taddr_t lists[3]; /* of free blocks, those of other threads last */
	taddr_t heap;	  /* of a thread; 0 = not known */
	taddr_t arena;	  /* memory that is the allocator's: a segment, too; 0 = none */
	bool has_aligned; /* programs may have addresses within blocks, which begin there for them */
};

/* Find pages of @snap, and their version: with each call those of another mimalloc. 0, -ENOENT or -ETIME. */
int mimalloc_map_find(struct mimalloc_map *m, struct snapshot *snap, u64 deadline_ns) __must_check;
/* The end of the memory that begins at @arena; @arena if that is no arena. */
taddr_t mimalloc_map_arena_end(struct mimalloc_map *m, taddr_t arena);
/* Where a heap has the blocks that other threads have freed, in bytes. */
u32 mimalloc_map_delayed(const struct mimalloc_map *m) __attribute__((pure));
const char *mimalloc_map_version(const struct mimalloc_map *m) __attribute__((pure));
/* Show all runs, upwards. 0, or what @visit returns, which ends it. */
int mimalloc_map_each(struct mimalloc_map *m, int (*visit)(void *ctx, const struct mimalloc_map_run *run),
		      void *ctx) __must_check;
/* Read the description of the page of @run. False if it cannot be one. */
bool mimalloc_map_page(struct mimalloc_map *m, const struct mimalloc_map_run *run,
		       struct mimalloc_map_page *out);

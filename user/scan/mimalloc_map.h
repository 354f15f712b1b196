/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The pages of blocks of mimalloc 1.8 to 1.9 and 3, 64 bits. For user/scan/ and user/census/.
 *
 * Version 1 has segments of 4 MiB with pages of 64 KiB, 512 KiB or 4 MiB. They begin with books: a cookie as in version
 * 2 (user/census/mimalloc.h), and an entry for each page. Version 3 has a map of all pages.
 *
 * The map has two levels. Its root has a word for each 512 MiB of addresses, which leads to a table with a word for
 * each 64 KiB: the description of the page of blocks that begins there or goes on there. A pointer in the data of the
 * library leads to the root, whose first word is the table behind its own end. Pages have blocks of one size and three
 * lists of free ones.
 */
#pragma once

#include "user/scan/page_reader.h"

struct mimalloc_map_layout;

struct mimalloc_map {
	struct page_reader top, sub, page;
	const struct mimalloc_map_layout *layout;
	taddr_t root;
	u64 nr_entries, nr_looks, disguise;
	size_t nr_right, nr_wrong; /* pages, when a layout is tried */
};

/* A page of blocks. */
struct mimalloc_map_run {
	taddr_t start, end, books;
};

struct mimalloc_map_page {
	taddr_t first, end; /* of the blocks; of the page */
	u64 slot;
	u32 capacity, reserved, used;
	taddr_t lists[3]; /* of free blocks, those of other threads last */
	taddr_t heap;	  /* of a thread; 0 = not known */
	taddr_t arena;	  /* memory that is the allocator's; 0 = none */
	bool has_aligned; /* programs may have addresses within blocks, which begin there for them */
};

/* Find the pages of @snap, and its version. 0 or -ENOENT. */
int mimalloc_map_find(struct mimalloc_map *m, struct snapshot *snap) __must_check;
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

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where the versions of mimalloc have what in their books. For user/scan/mimalloc_map.c. */
#pragma once

#include "user/lib/types.h"

enum {
	NR_MIMALLOC_LAYOUTS = 13,
	MIMALLOC_MAX_WORDS = 16, /* of a description */
	MIMALLOC_SLICE = 64 << 10,
};

/* Where the first block of a page is. */
enum mimalloc_start {
	START_AT,	/* at an address that the description has */
	START_WORDS,	/* so many words behind the description */
	START_BYTES,	/* so many bytes behind the start of the page */
	START_MULTIPLE, /* at a multiple of the size of blocks */
	START_PREFIX,	/* behind a few bytes, if blocks are small */
	START_TRIPLE,	/* behind one block, or three of the smallest ones */
};

/*
 * Where a segment has what, in words. Version 1: bytes, number of pages, their shift; version 2: slices, entries for
 * slices, number of pages in use.
 */
struct mimalloc_segment_layout {
	bool has_slices; /* version 2 */
	u8 size, capacity, info, cookie, shift, kind, table, entry;
};

/* Places are in words; numbers of blocks have 16 bits. */
struct mimalloc_layout {
	const char *version;
	const struct mimalloc_segment_layout *segment; /* NULL: there is a map */
	u8 flags, aligned_bit, free, local, other, slot, slot_shift, used, counts, counts_shift;
	u16 start; /* START_PREFIX: bytes */
	u8 memory, heap;
	enum mimalloc_start how;
	u16 delayed; /* in a heap, in bytes: blocks that other threads have freed */
};

extern const struct mimalloc_layout mimalloc_layouts[NR_MIMALLOC_LAYOUTS];

/* The first block, of @slot bytes, of the page from @start on that the @words at @books describe. */
taddr_t mimalloc_first(const struct mimalloc_layout *l, const u64 *words, taddr_t books, taddr_t start,
		       u64 slot);

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where the versions of mimalloc 2 have what in their books. For user/scan/ and user/census/. */
#pragma once

#include "user/lib/types.h"

/*
 * A segment of 32 MiB begins with its books: a header, then an entry for each slice of 64 KiB. Places are in words.
 */
struct mimalloc_layout {
	const char *version;
	u8 used, cookie, slices, info, kind, entries, table; /* in a segment */
	u8 entry;					     /* words of an entry */
	bool has_start; /* an entry has words for the size of its blocks, and for the first one */
	u16 prefix;  /* else: bytes before the first block of 8 to 1024 bytes; 0 = a multiple of its size */
	u16 delayed; /* in a heap, in bytes: blocks that other threads have freed */
	u8 nr_used;  /* in an entry: used blocks */
	u8 lists[3], heap; /* in an entry: lists of free blocks, those of other threads last */
};

enum {
	NR_MIMALLOC_LAYOUTS = 6,
	MIMALLOC_MAX_ENTRY = 12,      /* words */
	MIMALLOC_CAPACITY_SHIFT = 16, /* of the second word of an entry: blocks that were ever prepared */
	MIMALLOC_SLICE = 64 << 10,
	MIMALLOC_NR_SLICES = 512,
	MIMALLOC_SEGMENT = MIMALLOC_NR_SLICES * MIMALLOC_SLICE,
	MIMALLOC_MAX_INFO = 8, /* slices that the books take */
};

extern const struct mimalloc_layout mimalloc_layouts[NR_MIMALLOC_LAYOUTS];

/* The size of the blocks that the entry @words describes; 0 = its slices are free. */
u64 mimalloc_slot(const struct mimalloc_layout *l, const u64 *words) __attribute__((pure));
/* The first of them, in the page from @start on. */
taddr_t mimalloc_first(const struct mimalloc_layout *l, const u64 *words, taddr_t start)
	__attribute__((pure));

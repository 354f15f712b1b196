/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The bytes that blocks have covered since the heap began to be recorded. A block from before the attach cannot lie
 * there: it was alive then, so the allocator could not give its bytes to another block.
 */
#pragma once

#include "user/heap/budget.h"
#include "user/lib/hash_index.h"
#include "user/lib/types.h"

enum { COVER_GRANULE = 16 }; /* bytes per bit; allocators give out multiples */

/* The bits of 1 MiB of the target: 8 KiB. Only pages that blocks were in exist. */
struct cover_page {
	u64 number; /* address >> 20 */
	u64 *bits;  /* owned; one for each granule */
};

struct cover_map {
	struct budget *budget;	  /* borrowed */
	struct cover_page *pages; /* owned; in order of first use */
	size_t nr, max;
	struct hash_index index; /* pages by number */
	struct cover_page last;	 /* the page of the last call; bits = NULL: there was no call */
};

void cover_map_init(struct cover_map *m, struct budget *budget);
void cover_map_fini(struct cover_map *m);

/* Note a block of @size bytes at @addr. Does nothing without memory for it, and beyond 64 MiB of bits. */
void cover_map_add(struct cover_map *m, taddr_t addr, u64 size);

/*
 * The end of the bytes from @addr on that are all covered or all not, but not above @end. *@is_covered says which of
 * the two they are.
 */
taddr_t cover_map_run(const struct cover_map *m, taddr_t addr, taddr_t end, bool *is_covered);

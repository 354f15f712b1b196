/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which bytes blocks have ever covered since the books began: where none is now, nothing from before can be. */
#pragma once

#include "user/budget.h"
#include "user/lib/types.h"

enum { COVER_GRANULE = 16 }; /* bytes; allocators give out multiples */

/* One bit for each granule, in pages of 1 MiB of the target: 8 KiB for each that blocks were in. */
struct cover_page {
	u64 number; /* address >> 20 */
	u64 *bits;  /* owned; NULL = empty slot */
};

struct cover_map {
	struct budget *budget;	  /* borrowed */
	struct cover_page *pages; /* owned; open addressing, a power of two */
	size_t nr, capacity;
	struct cover_page last; /* the page of the last call */
};

void cover_map_init(struct cover_map *m, struct budget *budget);
void cover_map_fini(struct cover_map *m);

/* A block of @size bytes was at @addr. Without memory for it, or beyond 64 MiB of bits, it is not noted. */
void cover_map_add(struct cover_map *m, taddr_t addr, u64 size);

/* End of the bytes from @addr on, up to @end, that are all covered or all not, as *@is_covered says. */
taddr_t cover_map_run(const struct cover_map *m, taddr_t addr, taddr_t end, bool *is_covered);

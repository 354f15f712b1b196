/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The live blocks of one process in order: the largest first, those of one size by address. */
#pragma once

#include "user/heap/heap.h"
#include "user/report/report.h"

/* All zero: no block. */
struct sorted_blocks {
	struct heap_block *blocks; /* owned; in no order */
	u32 *order;		   /* owned; numbers of blocks in order */
	size_t nr;
	u64 nr_all; /* blocks that the report lets through, also those that are too many */
};

/*
 * Collect the blocks of @p that the options of @r let through: the first options.top in order, 0 = all. 0, -ENOMEM, or
 * -ECANCELED if options.is_unwanted says so.
 */
int block_list_init(struct sorted_blocks *l, const struct report *r,
		    const struct report_process *p) __must_check;
void block_list_fini(struct sorted_blocks *l);

/* Block @i in order. For calls with increasing @i: loads the memory of blocks that come soon. */
static inline const struct heap_block *block_list_get(const struct sorted_blocks *l, size_t i)
{
	enum { AHEAD = 16 };

	if (i + AHEAD < l->nr)
		__builtin_prefetch(&l->blocks[l->order[i + AHEAD]]);
	return &l->blocks[l->order[i]];
}

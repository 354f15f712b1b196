/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Keeps the verdict on each block when a scan is over, and finds it again. */
#include "user/scan/leaks_blocks.h"

#include <stdlib.h>

#include "user/heap/heap.h"
#include "user/lib/array.h"

enum { VERDICT_BITS = 3 };

_Static_assert(NR_SCAN_VERDICTS <= 1 << VERDICT_BITS, "a verdict fits below an address");

struct taking_blocks {
	struct leak_blocks *blocks;
	size_t max;
	size_t number; /* of the present block */
	const u8 *left_out;
};

static int take_verdict(void *ctx, const struct scan_block_info *info)
{
	struct taking_blocks *t = ctx;
	struct leak_blocks *b = t->blocks;
	size_t number = t->number++;
	bool is_left_out = t->left_out && t->left_out[number / 8] & 1 << number % 8;
	int err;

	if (info->verdict == SCAN_REACHABLE && !is_left_out)
		return 0;
	err = array_reserve(b->list, t->max, b->nr + 1);
	if (!err)
		b->list[b->nr++] = info->addr << VERDICT_BITS | (is_left_out ? SCAN_NONE : info->verdict);
	return err;
}

int leak_blocks_init(struct leak_blocks *b, const struct scan *scan, const struct heap *heap,
		     const u8 *left_out)
{
	struct taking_blocks t = { .blocks = b, .left_out = left_out };
	int err;

	*b = (struct leak_blocks){ .time_ns = heap_totals(heap).last_time_ns };
	err = scan_for_each(scan, take_verdict, &t);
	if (err)
		leak_blocks_fini(b);
	return err;
}

void leak_blocks_fini(struct leak_blocks *b)
{
	free(b->list);
	*b = (struct leak_blocks){ .list = NULL };
}

enum scan_verdict leak_blocks_find(const struct leak_blocks *b, const struct heap_block *block)
{
	size_t i = array_search(k, 0, b->nr, b->list[k] >> VERDICT_BITS < block->addr);

	if (block->time_ns > b->time_ns)
		return SCAN_NONE;
	if (i == b->nr || b->list[i] >> VERDICT_BITS != block->addr)
		return SCAN_REACHABLE;
	return (enum scan_verdict)(b->list[i] & ((1 << VERDICT_BITS) - 1));
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* When a block was allocated, and before which others, in the 36 bits that a block has for both. */
#include "user/heap/heap_private.h"

/* Orders count units of 2^order_shift ns. The unit is doubled when their bits do not suffice: 18 minutes at first. */
enum { FIRST_SHIFT = 4, STEP = 2 };

void heap_order_begin(struct heap *h, u64 now_ns)
{
	h->base_ms = now_ns / NS_PER_MS;
	h->order_shift = FIRST_SHIFT;
}

/* Rounded up, as the orders themselves: so a time of whole milliseconds stays what it was. */
static u64 half_of(u64 order)
{
	return order / 2 + order % 2;
}

static void halve_all(struct block_table *t)
{
	for (struct block *b = NULL; (b = block_table_next(t, b));)
		block_set_order(b, half_of(block_order(b)));
}

static void double_unit(struct heap *h)
{
	h->order_shift++;
	h->last_order = half_of(h->last_order);
	halve_all(&h->blocks);
	halve_all(&h->covered);
	for (u32 i = 0; i < h->nr_pending; i++)
		if (h->pending[i].kind == PENDING_BLOCK)
			block_set_order(&h->pending[i].block, half_of(block_order(&h->pending[i].block)));
	for (size_t i = 0; i < h->regions.nr_regions; i++)
		h->regions.regions[i].order = half_of(h->regions.regions[i].order);
}

u64 heap_order_next(struct heap *h, u64 time_ns)
{
	u64 base_ns = h->base_ms * NS_PER_MS, ns = time_ns > base_ns ? time_ns - base_ns : 0;
	u64 order, end;

	while (ns + NS_PER_MS >= (BLOCK_MAX_ORDER + 1) << h->order_shift &&
	       (1ULL << (h->order_shift + 1)) < NS_PER_MS)
		double_unit(h);
	order = (ns + (1ULL << h->order_shift) - 1) >> h->order_shift;
	/* Blocks of one moment keep their order while that makes no time wrong by a millisecond. */
	end = order + (NS_PER_MS >> h->order_shift) - 1;
	if (h->last_order >= order && h->last_order <= end)
		order = h->last_order + STEP < end ? h->last_order + STEP : end;
	if (order > BLOCK_MAX_ORDER)
		order = BLOCK_MAX_ORDER;
	if (order > h->last_order)
		h->last_order = order;
	return order;
}

u64 heap_order_time_ns(const struct heap *h, u64 order)
{
	return (h->base_ms + (order << h->order_shift) / NS_PER_MS) * NS_PER_MS;
}

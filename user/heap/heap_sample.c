/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sampled blocks of a heap, and the blocks that they stand for. */
#include "user/heap/heap_sample.h"

#include <math.h>

#include "user/heap/heap_private.h"
#include "user/lib/hash_index.h"

void heap_set_sample(struct heap *h, u64 bytes)
{
	h->sample_bytes = bytes > 1 ? bytes : 0;
}

u64 heap_sample_bytes(const struct heap *h)
{
	return h->sample_bytes;
}

struct heap_samples heap_samples(const struct heap *h)
{
	return (struct heap_samples){ h->nr_samples, h->blocks.nr };
}

/* How many blocks of @size bytes one stands for: its probability is 1 - exp(-(@size + 1) / distance). */
static double sample_weight(const struct heap *h, u64 size)
{
	return -1 / expm1(-((double)size + 1) / (double)h->sample_bytes);
}

static bool is_sampled_fn(const struct heap *h, u16 fn)
{
	const struct alloc_fn *row = alloc_fn(h->fns, fn);

	return row->family != FAMILY_MMAP && row->family != FAMILY_POOL;
}

struct heap_worth heap_worth(const struct heap *h, u16 fn, u64 size, bool is_more)
{
	double weight;

	if (!h->sample_bytes || !is_sampled_fn(h, fn))
		return (struct heap_worth){ 1, size };
	weight = sample_weight(h, size);
	return (struct heap_worth){ (u64)weight + is_more, (u64)llround(weight * (double)size) };
}

/* Blocks count as whole numbers: by chance one more, so that their mean is right. The same again for the same event. */
bool heap_sample_is_more(const struct heap *h, const struct heap_event *ev)
{
	const double whole = 4294967296.0;
	double weight;

	if (!h->sample_bytes)
		return false;
	weight = sample_weight(h, ev->size);
	return (double)(hash_u64(hash_u64(ev->addr ^ ev->time_ns) >> 7) >> 32) <
	       (weight - floor(weight)) * whole;
}

struct heap_worth heap_block_worth(const struct heap *h, const struct heap_block *block)
{
	u16 fn = heap_row_get(h, block->row).fn;

	return heap_worth(h, fn, block->size, block->is_more);
}

u64 heap_sampled_calls(const struct heap *h, const struct heap_event *ev)
{
	const struct block *b = ev->h.kind == EVENT_FREE ? block_table_find(&h->blocks, ev->addr) : NULL;
	u64 size = ev->size < BLOCK_MAX_SIZE ? ev->size : BLOCK_MAX_SIZE;

	if (b)
		return heap_worth(h, h->rows.rows[b->row].fn, b->size, b->is_more).nr;
	if (ev->h.kind == EVENT_FREE)
		return 1;
	return ev->h.flags & EVENT_UNSAMPLED && ev->h.kind == EVENT_REALLOC_END
		       ? 0
		       : heap_worth(h, ev->h.fn, size, heap_sample_is_more(h, ev)).nr;
}

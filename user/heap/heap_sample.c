/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sampled blocks of a heap, and the blocks that they stand for. */
#include "user/heap/heap_sample.h"

#include <math.h>

#include "user/heap/heap_worth.h"
#include "user/lib/hash_index.h"

void heap_set_sample(struct heap *h, u64 bytes)
{
	h->sample_bytes = bytes > 1 ? bytes : 0;
}

u64 heap_sample_bytes(const struct heap *h)
{
	return h->sample_bytes && h->sample_last ? h->sample_last : h->sample_bytes;
}

struct heap_samples heap_samples(const struct heap *h)
{
	return (struct heap_samples){ h->nr_samples, h->blocks.nr };
}

/*
 * How many blocks of @size bytes one stands for that was sampled at @distance, as in an event: its probability is
 * 1 - exp(-(@size + 1) / distance).
 */
static double sample_weight(const struct heap *h, u64 size, u32 distance)
{
	double bytes = distance ? (double)(1ULL << distance) : (double)h->sample_bytes;

	return -1 / expm1(-((double)size + 1) / bytes);
}

/* The distance of @ev, which the target may have written. */
static u32 sample_distance_of(const struct heap_event *ev)
{
	return ev->h.distance < 1U << (47 - SAMPLED_SIZE_BITS) ? ev->h.distance : 0;
}

static bool is_sampled_fn(const struct heap *h, u16 fn)
{
	const struct alloc_fn *row = alloc_fn(h->fns, fn);

	return row->family != FAMILY_MMAP && row->family != FAMILY_POOL;
}

struct heap_worth heap_worth(const struct heap *h, u16 fn, u64 size, u32 distance, bool is_more)
{
	double weight;

	if (!h->sample_bytes || !is_sampled_fn(h, fn))
		return (struct heap_worth){ 1, size };
	weight = sample_weight(h, size, distance);
	return (struct heap_worth){ (u64)weight + is_more, (u64)llround(weight * (double)size) };
}

/* Blocks count as whole numbers: by chance one more, so that their mean is right. The same again for the same event. */
static bool sample_is_more(const struct heap *h, const struct heap_event *ev)
{
	double weight = sample_weight(h, ev->size, sample_distance_of(ev)), whole = 4294967296.0;

	return (double)(hash_u64(hash_u64(ev->addr ^ ev->time_ns) >> 7) >> 32) <
	       (weight - floor(weight)) * whole;
}

void heap_sample_enter(struct heap *h, struct block *b, const struct heap_event *ev)
{
	u64 size = ev->size < SAMPLED_MAX_SIZE ? ev->size : SAMPLED_MAX_SIZE,
	    distance = sample_distance_of(ev);

	b->is_more = sample_is_more(h, ev);
	b->size = size | distance << SAMPLED_SIZE_BITS;
	h->nr_samples++;
	if (distance)
		h->sample_last = 1ULL << distance;
}

u32 heap_sample_distance(const struct block *b)
{
	return (u32)(b->size >> SAMPLED_SIZE_BITS);
}

struct heap_worth heap_block_worth(const struct heap *h, const struct heap_block *block)
{
	u16 fn = heap_row_get(h, block->row).fn;

	return heap_worth(h, fn, block->size, block->distance, block->is_more);
}

u64 heap_sampled_calls(const struct heap *h, const struct heap_event *ev)
{
	const struct block *b = ev->h.kind == EVENT_FREE ? block_table_find(&h->blocks, ev->addr) : NULL;
	u64 size = ev->size < SAMPLED_MAX_SIZE ? ev->size : SAMPLED_MAX_SIZE;

	if (b)
		return block_worth(h, b).nr;
	if (ev->h.kind == EVENT_FREE)
		return 1;
	return ev->h.flags & EVENT_UNSAMPLED && ev->h.kind == EVENT_REALLOC_END
		       ? 0
		       : heap_worth(h, ev->h.fn, size, sample_distance_of(ev), sample_is_more(h, ev)).nr;
}

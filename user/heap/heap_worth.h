/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Inside of the heap: the worth of sampled blocks. Functions are in user/heap/heap_sample.c. */
#pragma once

#include "user/heap/heap_private.h"

/*
 * A sampled block keeps the logarithm of its distance above the bits of its size. SAMPLED_ALWAYS in its place: such
 * blocks are always sampled, and each stands for itself.
 */
enum { SAMPLED_SIZE_BITS = 41, SAMPLED_ALWAYS = 63 };
static const u64 SAMPLED_MAX_SIZE = (1ULL << SAMPLED_SIZE_BITS) - 1;

/* The bytes of @b. */
static inline u64 block_size(const struct heap *h, const struct block *b)
{
	return HAS_SAMPLES && h->sample_bytes ? b->size & SAMPLED_MAX_SIZE : b->size;
}

/* The worth of a block of @size bytes that @fn has allocated, sampled at @distance. */
struct heap_worth heap_worth(const struct heap *h, u16 fn, u64 size, u32 distance, bool is_more);
/* The new block @b of @ev was sampled. */
void heap_sample_enter(struct heap *h, struct block *b, const struct heap_event *ev);
/* @row has the new block @b: add to its variance. */
void heap_sample_spread(const struct heap *h, struct row *row, const struct block *b);
/* The distance of @b, as in an event. */
u32 heap_sample_distance(const struct block *b);
/* The number of calls that @ev, which is about to be entered, stands for. */
u64 heap_sampled_calls(const struct heap *h, const struct heap_event *ev);

/* The worth of the block @b. */
static inline struct heap_worth block_worth(const struct heap *h, const struct block *b)
{
	if (!HAS_SAMPLES || !h->sample_bytes)
		return (struct heap_worth){ 1, b->size };
	return heap_worth(h, h->rows.rows[b->row].fn, block_size(h, b), heap_sample_distance(b), b->is_more);
}

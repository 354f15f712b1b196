/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Checks of a heap's sums that must hold after any events. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "user/heap/heap.h"

struct sums {
	u64 blocks, bytes, pending, unsure;
};

static inline int add_block(void *ctx, const struct heap_block *b)
{
	struct sums *s = ctx;

	s->blocks++;
	s->bytes += b->size;
	s->pending += b->is_pending;
	s->unsure += b->is_unsure;
	return 0;
}

static inline struct sums sum_blocks(const struct heap *h)
{
	struct sums s = { 0 };

	assert_int_equal(heap_for_each_block(h, add_block, &s), 0);
	return s;
}

/* Sums that every way to add them up must agree on. */
static inline void same_sums(const struct heap_totals *a, const struct heap_totals *b)
{
	assert_int_equal(a->allocs, b->allocs);
	assert_int_equal(a->frees, b->frees);
	assert_int_equal(a->alloc_bytes, b->alloc_bytes);
	assert_int_equal(a->live_blocks, b->live_blocks);
	assert_int_equal(a->live_bytes, b->live_bytes);
	assert_int_equal(a->temporary, b->temporary);
}

/* Check the promises of user/heap/heap.h. @nr_splits: pieces more than blocks. */
static inline void check_sums(const struct heap *h, u64 nr_splits)
{
	struct heap_totals t = heap_totals(h);
	struct sums s = sum_blocks(h);
	struct heap_totals all = { 0 };

	for (u32 i = 0; i < heap_row_count(h); i++) {
		struct heap_row r = heap_row_get(h, i);

		assert_int_equal(r.live_blocks, r.allocs - r.frees);
		all.allocs += r.allocs;
		all.frees += r.frees;
		all.alloc_bytes += r.alloc_bytes;
		all.live_blocks += r.live_blocks;
		all.live_bytes += r.live_bytes;
		all.peak_bytes += r.peak_bytes;
		all.temporary += r.temporary;
	}
	same_sums(&t, &all);
	assert_int_equal(t.peak_bytes, all.peak_bytes);
	assert_int_equal(t.live_blocks, t.allocs - t.frees);
	assert_int_equal(t.live_blocks + nr_splits, s.blocks);
	assert_int_equal(t.live_bytes, s.bytes);
	assert_int_equal(heap_pending(h), s.pending);
}

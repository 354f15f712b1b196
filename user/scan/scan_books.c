/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The blocks of a heap, in the form that a scan takes. */
#include "user/heap/heap.h"
#include "user/heap/heap_sample.h"
#include "user/scan/scan.h"

static int scan_books_for_each(const void *ctx, int (*visit)(void *visit_ctx, const struct heap_block *block),
			       void *visit_ctx)
{
	return heap_for_each_block(ctx, visit, visit_ctx);
}

static bool scan_books_find(const void *ctx, taddr_t addr, struct heap_block *out)
{
	return heap_find(ctx, addr, out);
}

static const struct cover_map *scan_books_cover(const void *ctx)
{
	return heap_cover(ctx);
}

static struct heap_worth scan_books_worth(const void *ctx, const struct heap_block *block)
{
	return heap_block_worth(ctx, block);
}

struct scan_books scan_books_of(const struct heap *heap, bool has_all)
{
	bool is_sampled = HAS_SAMPLES && heap_sample_bytes(heap);

	return (struct scan_books){ .ctx = heap,
				    .nr_blocks = is_sampled ? 0 : heap_totals(heap).live_blocks,
				    .for_each = scan_books_for_each,
				    .find = scan_books_find,
				    .worth = is_sampled ? scan_books_worth : NULL,
				    .cover = has_all ? scan_books_cover : NULL };
}

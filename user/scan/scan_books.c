/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The blocks of a heap, in the form that a scan takes. */
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

struct scan_books scan_books_of(const struct heap *heap, bool has_all)
{
	return (struct scan_books){ .ctx = heap,
				    .nr_blocks = heap_totals(heap).live_blocks,
				    .for_each = scan_books_for_each,
				    .find = scan_books_find,
				    .cover = has_all ? scan_books_cover : NULL };
}

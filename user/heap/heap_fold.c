/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Joins the rows of callers whose stacks were folded, and leads all that names a row to its new number. */
#include <errno.h>
#include <stdlib.h>

#include "user/heap/fold.h"
#include "user/heap/heap_private.h"
#include "user/heap/stacks.h"
#include "user/lib/cleanup.h"

struct fold_counts heap_folded(const struct heap *h)
{
	return h->folded;
}

void heap_age(struct heap *h)
{
	h->rows.nr_old = h->rows.nr;
}

/* The first row that may change. Rows around a span are not kept apart by age. */
static u32 first_young(const struct heap *h, bool is_full)
{
	return is_full || h->first_row || h->end_row != UINT32_MAX ? 0 : h->rows.nr_old;
}

void heap_weigh(const struct heap *h, const struct stack_table *t, bool is_full, u32 *weights)
{
	for (u32 i = first_young(h, is_full); i < h->rows.nr; i++) {
		const struct row *row = &h->rows.rows[i];
		u32 nr = stack_table_number(t, row->stack);
		u64 allocs = row->allocs + 1;

		if (nr == HASH_NO_ITEM)
			continue;
		allocs += weights[nr] & ~FOLD_IS_LIVE;
		if (allocs >= FOLD_IS_LIVE)
			allocs = FOLD_IS_LIVE - 1;
		weights[nr] = (weights[nr] & FOLD_IS_LIVE) | (u32)allocs;
		if (row->allocs != row->frees)
			weights[nr] |= FOLD_IS_LIVE;
	}
}

static void heap_fold_name(const struct stack_table *t, u64 stack, bool *is_used)
{
	u32 nr = stack_table_number(t, stack);

	if (nr != HASH_NO_ITEM)
		is_used[nr] = true;
}

void heap_name_stacks(const struct heap *h, const struct stack_table *t, bool *is_used)
{
	for (u32 i = 0; i < h->rows.nr; i++)
		heap_fold_name(t, h->rows.rows[i].stack, is_used);
	for (u64 i = 0; h->misuses && h->misuses->freed && i < 1UL << h->misuses->bits; i++)
		if (h->misuses->freed[i].addr)
			heap_fold_name(t, h->misuses->freed[i].stack, is_used);
}

static void follow_blocks(struct block_table *t, const u32 *to)
{
	struct block *b = NULL;

	while ((b = block_table_next(t, b)))
		b->row = to[b->row];
}

static u32 follow_row(u32 row, const u32 *to, u32 nr)
{
	return row < nr ? to[row] : row;
}

static void follow_misuses(struct misuse_table *t, const struct stack_table *stacks, const u32 *to, u32 nr)
{
	for (size_t i = 0; i < t->nr; i++) {
		struct misuse *m = &t->list[i];

		m->alloc_row = follow_row(m->alloc_row, to, nr);
		m->free_row = follow_row(m->free_row, to, nr);
		m->earlier_row = follow_row(m->earlier_row, to, nr);
	}
	for (size_t i = 0; i < NR_NOTICES_KINDS; i++)
		t->notices[i].row = follow_row(t->notices[i].row, to, nr);
	for (u64 i = 0; t->freed && i < 1UL << t->bits; i++) {
		struct misuse_freed *f = &t->freed[i];

		if (!f->addr)
			continue;
		f->alloc_row = follow_row(f->alloc_row, to, nr);
		f->stack = stack_canonical(stacks, f->stack);
	}
}

/* Lead all that names a row, but the slices, to the new numbers. */
static void heap_fold_follow_rows(struct heap *h, const struct stack_table *stacks, const u32 *to, u32 nr)
{
	follow_blocks(&h->blocks, to);
	follow_blocks(&h->covered, to);
	for (size_t i = 0; i < h->regions.nr_regions; i++)
		h->regions.regions[i].row = follow_row(h->regions.regions[i].row, to, nr);
	for (u32 i = 0; i < h->nr_pending; i++)
		if (h->pending[i].kind == PENDING_BLOCK)
			h->pending[i].block.row = to[h->pending[i].block.row];
	if (h->misuses)
		follow_misuses(h->misuses, stacks, to, nr);
}

/* The row of a caller whose stack was folded: it is counted, once. */
static void heap_fold_note_folded(struct heap *h, struct row *row)
{
	if (row->nr_folded || !row->allocs)
		return;
	row->nr_folded = 1;
	h->folded.callers++;
	h->folded.live_callers += row->allocs != row->frees;
}

/*
 * Rows before and behind a span are of other callers: each part has an index of its own, and only that of the last one
 * is needed later. A tape names rows, so none are joined.
 */
int heap_fold(struct heap *h, const struct stack_table *t, bool is_full, u32 *to)
{
	u32 nr = h->rows.nr, first = h->first_row, end = h->end_row, young = first_young(h, is_full);
	auto_free u32 *all = calloc((size_t)nr + 1, sizeof(*all));

	if (!all)
		return -ENOMEM;
	for (u32 i = 0; i < young; i++)
		all[i] = i;
	row_table_fold_begin(&h->rows, young);
	for (u32 i = young; i <= nr; i++) {
		struct row *row = &h->rows.rows[i];

		if (i && (i == first || i == end))
			row_table_begin_anew(&h->rows);
		if (i == first)
			h->first_row = h->rows.nr;
		if (i == end)
			h->end_row = h->rows.nr;
		if (i == nr)
			break;
		if (stack_canonical(t, row->stack) != row->stack) {
			row->stack = stack_canonical(t, row->stack);
			heap_fold_note_folded(h, row);
		}
		all[i] = row_table_fold(&h->rows, row, h->peak_nr, !h->tape);
	}
	row_table_fold_end(&h->rows);
	heap_fold_follow_rows(h, t, all, nr);
	heap_age(h);
	for (u32 i = first; i < nr && i < end; i++)
		to[i - first] = all[i] - h->first_row;
	if (HAS_SLICES && h->slices && slices_fold(h->slices, to, (u32)heap_row_count(h))) {
		slices_free(h->slices);
		h->slices = NULL;
	}
	return 0;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Counters per caller: an array of rows, and a hash table that finds the row of a caller. */
#include "user/heap/row_table.h"

#include <errno.h>
#include <stdlib.h>

void row_table_init(struct row_table *t, u64 seed, struct budget *budget)
{
	*t = (struct row_table){ .mul = hash_u64(seed) | 1, .budget = budget };
}

void row_table_fini(struct row_table *t)
{
	budget_give(t->budget, t->max * sizeof(*t->rows));
	budget_free_index(t->budget, &t->index);
	free(t->rows);
	*t = (struct row_table){ .mul = t->mul, .budget = t->budget };
}

int row_table_copy(struct row_table *out, const struct row_table *t, struct budget *budget)
{
	int err;

	*out = (struct row_table){ .mul = t->mul, .budget = budget };
	err = budget_copy(budget, &out->rows, t->rows, t->nr * sizeof(*t->rows));
	if (err)
		return err;
	out->nr = out->max = t->nr;
	out->first = t->first;
	out->nr_old = t->nr_old;
	err = budget_copy_index(budget, &out->index, &t->index);
	if (err)
		row_table_fini(out);
	return err;
}

static int row_table_add_row(struct row_table *t, u64 stack, u16 fn, u64 hash)
{
	int err;

	if (t->nr >= ROWS_MAX)
		return -ENOMEM;
	err = budget_array(t->budget, t->rows, t->max, (size_t)t->nr + 1);

	if (!err)
		err = budget_index(t->budget, &t->index, (size_t)t->index.nr + 1);
	if (!err)
		err = hash_index_add(&t->index, hash, t->nr);
	if (!err)
		t->rows[t->nr++] = (struct row){ .stack = stack, .fn = fn };
	return err;
}

/* The random factor keeps a target from choosing stacks that collide. */
static u64 hash_row(const struct row_table *t, u64 stack, u16 fn)
{
	return (stack ^ (stack >> 32) ^ ((u64)fn << 48)) * t->mul;
}

static u32 search_row(const struct row_table *t, u64 stack, u16 fn, u64 hash)
{
	u32 at = 0, row;

	while ((row = hash_index_next(&t->index, hash, &at)) != HASH_NO_ITEM)
		if (t->rows[row].stack == stack && t->rows[row].fn == fn)
			break;
	return row;
}

int row_table_find(struct row_table *t, u64 stack, u16 fn, u32 *out)
{
	u64 hash = hash_row(t, stack, fn);
	u32 row = search_row(t, stack, fn, hash);

	if (row == HASH_NO_ITEM) {
		int err = row_table_add_row(t, stack, fn, hash);

		if (err)
			return err;
		row = t->nr - 1;
	}
	t->cache[(stack + fn) % ROWS_CACHED] = row;
	*out = row;
	return 0;
}

void row_table_begin_anew(struct row_table *t)
{
	t->first = t->nr;
	hash_index_clear(&t->index);
}

void row_table_fold_begin(struct row_table *t, u32 from)
{
	if (!from) {
		t->first = 0;
		hash_index_clear(&t->index);
	}
	for (u32 i = from; from && i < t->nr; i++)
		hash_index_del(&t->index, hash_row(t, t->rows[i].stack, t->rows[i].fn), i);
	t->nr = from;
}

/* Add the counters of @from to @row. */
static void row_table_join_rows(struct row *row, const struct row *from, u64 peak_nr)
{
	row_keep_peak(row, peak_nr);
	row->at_peak += row_at_peak(from, peak_nr);
	row->allocs += from->allocs;
	row->frees += from->frees;
	row->alloc_bytes += from->alloc_bytes;
	row->live_bytes += from->live_bytes;
	row->temporary += from->temporary;
	row->spread += IS_AGENT ? 0 : from->spread;
	row->nr_folded += from->nr_folded;
	if (row->alignment_log != from->alignment_log)
		row->alignment_log = ROW_ALIGNMENTS;
}

u32 row_table_fold(struct row_table *t, const struct row *row, u64 peak_nr, bool may_join)
{
	u64 hash = hash_row(t, row->stack, row->fn);
	u32 same = search_row(t, row->stack, row->fn, hash);

	if (same != HASH_NO_ITEM && may_join) {
		row_table_join_rows(&t->rows[same], row, peak_nr);
		return same;
	}
	/* There is room: all rows of a part were in the table before. */
	if (same == HASH_NO_ITEM && hash_index_add(&t->index, hash, t->nr))
		return t->nr;
	t->rows[t->nr] = *row;
	return t->nr++;
}

void row_table_fold_end(struct row_table *t)
{
	u32 max = t->nr + t->nr / 4 + 1;
	struct row *rows = max < t->max ? realloc(t->rows, max * sizeof(*rows)) : NULL;

	if (!rows)
		return;
	budget_give(t->budget, (t->max - max) * sizeof(*rows));
	t->rows = rows;
	t->max = max;
}

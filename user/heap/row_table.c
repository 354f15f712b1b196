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
	err = budget_copy_index(budget, &out->index, &t->index);
	if (err)
		row_table_fini(out);
	return err;
}

static int add_row(struct row_table *t, u64 stack, u16 fn, u64 hash)
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

int row_table_find(struct row_table *t, u64 stack, u16 fn, u32 *out)
{
	/* The random factor keeps a target from choosing stacks that collide. */
	u64 hash = (stack ^ (stack >> 32) ^ ((u64)fn << 48)) * t->mul;
	u32 at = 0, row;

	while ((row = hash_index_next(&t->index, hash, &at)) != HASH_NO_ITEM)
		if (t->rows[row].stack == stack && t->rows[row].fn == fn)
			break;
	if (row == HASH_NO_ITEM) {
		int err = add_row(t, stack, fn, hash);

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

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Counters per caller: an array of rows and a hash index on it. */
#include "user/row_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_BITS = 5, MAX_BITS = 31 };

void row_table_init(struct row_table *t, u64 seed, struct budget *budget)
{
	*t = (struct row_table){ .mul = (seed * 0x9e3779b97f4a7c15ULL) | 1, .budget = budget };
}

static u64 index_bytes(u32 bits)
{
	return bits ? sizeof(u32) << bits : 0;
}

void row_table_fini(struct row_table *t)
{
	budget_give(t->budget, t->max * sizeof(*t->rows) + index_bytes(t->slot_bits));
	free(t->rows);
	free(t->slots);
	*t = (struct row_table){ .mul = t->mul, .budget = t->budget };
}

/* Where the row of @stack and @fn is, or the empty slot where it belongs. */
static u32 *slot_of(const struct row_table *t, u64 stack, u16 fn)
{
	u32 mask = (1U << t->slot_bits) - 1;
	u64 hash = (stack ^ (stack >> 32) ^ ((u64)fn << 48)) * t->mul;
	u32 i = hash >> (64 - t->slot_bits);

	for (; t->slots[i]; i = (i + 1) & mask) {
		const struct row *row = &t->rows[t->slots[i] - 1];

		if (row->stack == stack && row->fn == fn)
			break;
	}
	return &t->slots[i];
}

/* Index of 1 << @bits slots with all rows. */
static int index_rows(struct row_table *t, u32 bits)
{
	u32 *old = t->slots;
	u32 *slots;

	if (bits > MAX_BITS || !budget_take(t->budget, index_bytes(bits)))
		return -ENOMEM;
	slots = calloc(1UL << bits, sizeof(*slots));
	if (!slots) {
		budget_give(t->budget, index_bytes(bits));
		return -ENOMEM;
	}
	budget_give(t->budget, index_bytes(t->slot_bits));
	t->slots = slots;
	t->slot_bits = bits;
	for (u32 i = t->first; i < t->nr; i++)
		*slot_of(t, t->rows[i].stack, t->rows[i].fn) = i + 1;
	free(old);
	return 0;
}

static int grow_rows(struct row_table *t, u32 max)
{
	u64 bytes = (u64)(max - t->max) * sizeof(*t->rows);
	struct row *rows;

	if (!budget_take(t->budget, bytes))
		return -ENOMEM;
	rows = realloc(t->rows, max * sizeof(*rows));
	if (!rows) {
		budget_give(t->budget, bytes);
		return -ENOMEM;
	}
	t->rows = rows;
	t->max = max;
	return 0;
}

int row_table_copy(struct row_table *out, const struct row_table *t, struct budget *budget)
{
	int err;

	row_table_init(out, 0, budget);
	out->mul = t->mul;
	if (!t->nr)
		return 0;
	err = grow_rows(out, t->nr);
	if (err)
		return err;
	memcpy(out->rows, t->rows, t->nr * sizeof(*t->rows));
	out->nr = t->nr;
	out->first = t->first;
	err = index_rows(out, t->slot_bits);
	if (err)
		row_table_fini(out);
	return err;
}

int row_table_get(struct row_table *t, u64 stack, u16 fn, u32 *out)
{
	u32 *slot = t->slots ? slot_of(t, stack, fn) : NULL;
	int err;

	if (slot && *slot) {
		*out = *slot - 1;
		return 0;
	}
	if (t->nr == t->max) {
		err = grow_rows(t, t->max + t->max / 2 + 16);
		if (err)
			return err;
	}
	if (!slot || t->nr - t->first >= (1U << t->slot_bits) / 3 * 2) {
		err = index_rows(t, slot ? t->slot_bits + 1 : FIRST_BITS);
		if (err)
			return err;
		slot = slot_of(t, stack, fn);
	}
	t->rows[t->nr] = (struct row){ .stack = stack, .fn = fn };
	*out = t->nr;
	*slot = ++t->nr;
	return 0;
}

void row_table_begin_anew(struct row_table *t)
{
	t->first = t->nr;
	if (t->slots)
		memset(t->slots, 0, index_bytes(t->slot_bits));
}

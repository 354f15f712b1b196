/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Collects and sorts live blocks. There may be tens of millions, so all of them are sorted digit by digit, which takes
 * a pass over the list for each digit in which blocks differ.
 */
#include "user/report/block_list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "user/lib/array.h"
#include "user/lib/cleanup.h"
#include "user/report/report_parts.h"
#include "user/scan/leaks.h"

enum { ASK_EACH = 4096, DIGIT_BITS = 11, NR_VALUES = 1 << DIGIT_BITS, NR_DIGITS = 6 };

/* A block to sort. */
struct item {
	u64 key;
	u32 number;
};

struct collecting {
	const struct report *report;
	const struct report_process *process;
	struct sorted_blocks *list;
	size_t room, max; /* max: 0 = all */
	u64 nr_seen;
	bool has_least;
	struct heap_block least; /* of the largest blocks so far the last: those behind it are not wanted */
};

static bool block_list_is_unwanted(const struct report *r)
{
	return r->options.is_unwanted && r->options.is_unwanted();
}

static int compare_blocks(const void *pa, const void *pb)
{
	const struct heap_block *a = pa, *b = pb;

	if (a->size != b->size)
		return a->size < b->size ? 1 : -1;
	return (a->addr > b->addr) - (a->addr < b->addr);
}

static void keep_largest(struct sorted_blocks *l, size_t max)
{
	if (l->nr)
		qsort(l->blocks, l->nr, sizeof(*l->blocks), compare_blocks);
	if (l->nr > max)
		l->nr = max;
}

/* The room is full: drop what is not among the first c->max. */
static void block_list_make_room(struct collecting *c)
{
	struct sorted_blocks *l = c->list;

	keep_largest(l, c->max);
	c->has_least = l->nr == c->max;
	if (c->has_least)
		c->least = l->blocks[l->nr - 1];
}

static bool is_leaked(const struct report_process *p, const struct heap_block *b)
{
	enum scan_verdict v = report_block_verdict(p, b);

	return v == SCAN_DEFINITE || v == SCAN_INDIRECT || v == SCAN_POSSIBLE;
}

static int block_list_visit_block(void *ctx, const struct heap_block *block)
{
	struct collecting *c = ctx;
	struct sorted_blocks *l = c->list;
	u32 only = c->report->options.only;

	if (c->nr_seen++ % ASK_EACH == 0 && block_list_is_unwanted(c->report))
		return -ECANCELED;
	if ((only && block->row + 1 != only) || !report_has_block(c->report, block))
		return 0;
	if (c->report->options.want_leaked && !is_leaked(c->process, block))
		return 0;
	l->nr_all++;
	if (c->has_least && compare_blocks(&c->least, block) <= 0)
		return 0;
	if (l->nr && l->nr == c->room && c->max)
		block_list_make_room(c);
	if (l->nr == c->room) {
		/* Much room at once, because keep_largest() sorts each time that the room is full. */
		int err = array_reserve(l->blocks, c->room, 2 * l->nr + 64);

		if (err)
			return err;
	}
	l->blocks[l->nr++] = *block;
	return 0;
}

static size_t block_list_digit(u64 key, int i)
{
	return key >> (i * DIGIT_BITS) & (NR_VALUES - 1);
}

/* Sort @items by one digit into @out. @starts: how many items have each value; is changed. */
static void sort_digit(const struct item *items, struct item *out, size_t nr, int i, u32 *starts)
{
	u32 sum = 0;

	for (size_t k = 0; k < NR_VALUES; k++) {
		u32 count = starts[k];

		starts[k] = sum;
		sum += count;
	}
	for (size_t k = 0; k < nr; k++)
		out[starts[block_list_digit(items[k].key, i)]++] = items[k];
}

/* Sort *@items by their keys with the help of *@spare. Equal keys keep their order. 0 or -ECANCELED. */
static int sort_items(struct item **items, struct item **spare, size_t nr, const struct report *r)
{
	u32 counts[NR_DIGITS][NR_VALUES];

	memset(counts, 0, sizeof(counts));
	for (size_t k = 0; k < nr; k++)
		for (int i = 0; i < NR_DIGITS; i++)
			counts[i][block_list_digit((*items)[k].key, i)]++;
	for (int i = 0; i < NR_DIGITS; i++) {
		struct item *sorted = *spare;

		if (counts[i][block_list_digit((*items)[0].key, i)] == nr)
			continue;
		if (block_list_is_unwanted(r))
			return -ECANCELED;
		sort_digit(*items, sorted, nr, i, counts[i]);
		*spare = *items;
		*items = sorted;
	}
	return 0;
}

static int sort_all(struct sorted_blocks *l, const struct report *r)
{
	auto_free struct item *items = malloc(l->nr * sizeof(*items));
	auto_free struct item *spare = malloc(l->nr * sizeof(*spare));
	int err;

	if (!items || !spare)
		return -ENOMEM;
	for (size_t i = 0; i < l->nr; i++)
		items[i] = (struct item){ l->blocks[i].addr, (u32)i };
	err = sort_items(&items, &spare, l->nr, r);
	for (size_t i = 0; i < l->nr; i++)
		items[i].key = ~l->blocks[items[i].number].size;
	if (!err)
		err = sort_items(&items, &spare, l->nr, r);
	for (size_t i = 0; i < l->nr; i++)
		l->order[i] = items[i].number;
	return err;
}

enum scan_verdict report_block_verdict(const struct report_process *p, const struct heap_block *b)
{
	return p->leaks && p->leaks->blocks.time_ns ? leak_blocks_find(&p->leaks->blocks, b) : SCAN_NONE;
}

int block_list_init(struct sorted_blocks *l, const struct report *r, const struct report_process *p)
{
	struct collecting c = { .report = r, .process = p, .list = l, .max = r->options.top };
	int err;

	*l = (struct sorted_blocks){ .nr = 0 };
	err = heap_for_each_block(p->heap, block_list_visit_block, &c);
	if (err || !l->nr)
		return err;
	if (l->nr > UINT32_MAX)
		return -ENOMEM;
	l->order = malloc(l->nr * sizeof(*l->order));
	if (!l->order)
		return -ENOMEM;
	if (!c.max)
		return sort_all(l, r);
	keep_largest(l, c.max);
	for (size_t i = 0; i < l->nr; i++)
		l->order[i] = (u32)i;
	return 0;
}

void block_list_fini(struct sorted_blocks *l)
{
	free(l->blocks);
	free(l->order);
	*l = (struct sorted_blocks){ .nr = 0 };
}

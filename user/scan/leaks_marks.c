/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Compare a scan with the last one. A block that was lost and is found again loses its mark. */
#include "user/scan/leaks_marks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "user/heap/heap_sample.h"
#include "user/lib/array.h"
#include "user/scan/leaks.h"

struct comparing {
	struct leaks *leaks;
	const struct heap *heap;
	const struct leak_marks *before;
	enum leak_kinds kinds;
	size_t next;   /* index in the marks before; both lists are by address */
	size_t number; /* of the present block */
	u8 *bits;      /* owned; one per block: left out. NULL = nothing is left out */
	struct leak_marks now;
	size_t max;
};

void leak_marks_fini(struct leak_marks *marks)
{
	free(marks->list);
	*marks = (struct leak_marks){ 0 };
}

static bool leaks_marks_is_lost(enum scan_verdict verdict)
{
	return verdict == SCAN_DEFINITE || verdict == SCAN_INDIRECT || verdict == SCAN_POSSIBLE;
}

static int leaks_marks_add_mark(struct comparing *c, const struct leak_mark *mark)
{
	int err = array_reserve(c->now.list, c->max, c->now.nr + 1);

	if (err)
		return err;
	c->now.list[c->now.nr++] = *mark;
	return 0;
}

static void leaks_marks_take(struct scan_sum *from, struct heap_worth w)
{
	from->blocks -= HAS_SAMPLES ? w.nr : 1;
	from->bytes -= w.bytes;
}

static void leaks_marks_add(struct scan_sum *to, struct heap_worth w)
{
	to->blocks += HAS_SAMPLES ? w.nr : 1;
	to->bytes += w.bytes;
}

static void leaks_marks_leave_out(struct comparing *c, const struct scan_block_info *info, u32 row,
				  struct heap_worth w)
{
	struct leaks *l = c->leaks;

	leaks_marks_take(&l->result.sums.of[info->verdict], w);
	if (row < l->nr_rows)
		leaks_marks_take(&l->rows[row].sums.of[info->verdict], w);
	leaks_marks_add(&l->left_out, w);
	c->bits[c->number / 8] |= 1 << c->number % 8;
}

static int leaks_marks_compare(struct comparing *c, const struct scan_block_info *info)
{
	const struct leak_marks *before = c->before;
	struct leak_mark mark = { .addr = info->addr };
	struct heap_block block;
	struct heap_worth w;
	bool is_marked;

	while (c->next < before->nr && before->list[c->next].addr < info->addr)
		c->next++;
	is_marked = c->next < before->nr && before->list[c->next].addr == info->addr;
	if ((!is_marked && !leaks_marks_is_lost(info->verdict)) || !heap_find(c->heap, info->addr, &block))
		return 0;
	w = heap_worth_or(c->heap, &block, info->size);
	mark.time_ns = block.time_ns;
	is_marked = is_marked && before->list[c->next].time_ns == mark.time_ns;
	if (!leaks_marks_is_lost(info->verdict)) {
		if (is_marked)
			leaks_marks_add(&c->leaks->again, w);
		return 0;
	}
	if (!is_marked)
		leaks_marks_add(&c->leaks->fresh, w);
	if (c->bits && is_marked != (c->kinds == LEAKS_LEAKED))
		leaks_marks_leave_out(c, info, block.row, w);
	return before->is_last ? 0 : leaks_marks_add_mark(c, &mark);
}

static int leaks_marks_visit(void *ctx, const struct scan_block_info *info)
{
	struct comparing *c = ctx;
	int err = leaks_marks_compare(c, info);

	c->number++;
	return err;
}

int leaks_compare(struct leaks *l, const struct scan *scan, const struct heap *heap, struct leak_marks *marks,
		  enum leak_kinds kinds, u8 **out_bits)
{
	struct comparing c = { .leaks = l, .heap = heap, .before = marks, .kinds = kinds };
	int err = 0;

	if (kinds != LEAKS_ALL) {
		c.bits = calloc(scan_count(scan) / 8 + 1, 1);
		err = c.bits ? 0 : -ENOMEM;
	}
	if (!err)
		err = scan_for_each(scan, leaks_marks_visit, &c);
	if (err) {
		free(c.bits);
		leak_marks_fini(&c.now);
		return err;
	}
	l->has_before = marks->has_scan;
	leak_marks_fini(marks);
	*marks = c.now;
	marks->has_scan = true;
	*out_bits = c.bits;
	return 0;
}

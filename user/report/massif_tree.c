/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sorts stacks by their frames, so that each subtree is a range of stacks, and writes the ranges, largest first. */
#include "user/report/massif_tree.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "user/lib/array.h"
#include "user/lib/cleanup.h"
#include "user/lib/escape.h"
#include "user/names/symbolize.h"
#include "user/report/frames.h"
#include "user/report/report_rows.h"

/* One caller with a value. */
struct leaf {
	struct report_frames stack; /* owned */
	u64 value;
};

/* A subtree: leaves with the same frames down to some depth. */
struct branch {
	size_t first, end;
	u64 value;
};

struct tree {
	FILE *out;
	const struct report *report;
	struct leaf *leaves; /* owned */
	size_t nr, max;
	u64 total;
};

static int massif_tree_compare_u64(u64 a, u64 b)
{
	return (a > b) - (a < b);
}

static int compare_frames(const struct report_frame *a, const struct report_frame *b)
{
	int cmp = massif_tree_compare_u64(a->ref.module, b->ref.module);

	if (!cmp)
		cmp = massif_tree_compare_u64(a->ref.offset, b->ref.offset);
	return cmp ? cmp : massif_tree_compare_u64((uintptr_t)a->symbol, (uintptr_t)b->symbol);
}

static int compare_leaves(const void *pa, const void *pb)
{
	const struct leaf *a = pa, *b = pb;
	int cmp = 0;

	for (size_t i = 0; i < a->stack.nr && i < b->stack.nr && !cmp; i++)
		cmp = compare_frames(&a->stack.list[i], &b->stack.list[i]);
	return cmp ? cmp : massif_tree_compare_u64(a->stack.nr, b->stack.nr);
}

/* The largest first; equal ones in the order of their frames. */
static int compare_branches(const void *pa, const void *pb)
{
	const struct branch *a = pa, *b = pb;
	int cmp = massif_tree_compare_u64(b->value, a->value);

	return cmp ? cmp : massif_tree_compare_u64(a->first, b->first);
}

/* The branches of @from behind @depth frames. The caller owns *@out. 0 or -ENOMEM. */
static int find_branches(const struct tree *t, const struct branch *from, size_t depth, struct branch **out,
			 size_t *nr)
{
	auto_free struct branch *list = NULL;
	size_t count = 0, max = 0;

	for (size_t i = from->first; i < from->end; i++) {
		const struct leaf *leaf = &t->leaves[i];

		if (leaf->stack.nr <= depth)
			continue; /* ends here */
		if (count && !compare_frames(&t->leaves[list[count - 1].first].stack.list[depth],
					     &leaf->stack.list[depth])) {
			list[count - 1].end = i + 1;
			list[count - 1].value += leaf->value;
			continue;
		}
		if (array_reserve(list, max, count + 1))
			return -ENOMEM;
		list[count++] = (struct branch){ i, i + 1, leaf->value };
	}
	if (count)
		qsort(list, count, sizeof(*list), compare_branches);
	*out = take_ptr(list);
	*nr = count;
	return 0;
}

/* " 0x1234: make_node (list.c:42)", or " 0x1234: ??? (in /usr/bin/prog)" without a source file. */
static void massif_tree_put_place(const struct tree *t, const struct branch *b, size_t depth)
{
	struct report_frames *f = &t->leaves[b->first].stack;
	const struct symbol *s = f->list[depth].symbol;
	const struct module *m = module_get(t->report->modules, f->list[depth].ref.module);

	fprintf(t->out, " 0x%" PRIX64 ": ", f->list[depth].ref.offset);
	escape_text(t->out, s->function ? s->function : "???");
	if (s->file) {
		fputs(" (", t->out);
		escape_text(t->out, s->file);
		fprintf(t->out, ":%u)", s->line);
	} else if (m) {
		fputs(" (in ", t->out);
		escape_text(t->out, module_name(m));
		putc(')', t->out);
	}
}

/* Is @value less than 1 % of the whole tree? */
static bool is_small(const struct tree *t, u64 value)
{
	return value < t->total / 100 + (t->total % 100 != 0);
}

static void put_small(const struct tree *t, size_t depth, size_t nr, u64 value)
{
	fprintf(t->out, "%*sn0: %" PRIu64 " in %zu place%s, %sbelow massif's threshold (1.00%%)\n",
		(int)depth, "", value, nr, nr == 1 ? "" : "s", nr == 1 ? "" : "all ");
}

/* Blocks without a stack are a place of their own, so that the places of the root add up to it. */
static u64 without_stack(const struct tree *t)
{
	u64 value = 0;

	for (size_t i = 0; i < t->nr && !t->leaves[i].stack.nr; i++)
		value += t->leaves[i].value;
	return value;
}

/* Write the subtree @b, whose leaves have @depth frames in common. Deep at most as the longest stack. */
static int put_branch(const struct tree *t, const struct branch *b, size_t depth)
{
	auto_free struct branch *list = NULL;
	u64 bare = depth ? 0 : without_stack(t), small = 0;
	size_t nr, shown = 0;
	int err = find_branches(t, b, depth, &list, &nr);

	if (err)
		return err;
	while (shown < nr && !is_small(t, list[shown].value))
		shown++;
	for (size_t i = shown; i < nr; i++)
		small += list[i].value;
	fprintf(t->out, "%*sn%zu: %" PRIu64, (int)depth, "", shown + (shown < nr) + (bare != 0), b->value);
	if (depth)
		massif_tree_put_place(t, b, depth - 1);
	else
		fputs(" (heap allocation functions) malloc/new/new[], --alloc-fns, etc.", t->out);
	putc('\n', t->out);
	for (size_t i = 0; i < shown && !err; i++)
		err = put_branch(t, &list[i], depth + 1);
	if (bare)
		fprintf(t->out, " n0: %" PRIu64 " 0x0: ??? (no stack)\n", bare);
	if (shown < nr)
		put_small(t, depth + 1, nr - shown, small);
	return err;
}

static int add_leaves(struct tree *t, const struct report_process *p, const struct report_measure *m)
{
	auto_free struct report_row *rows = NULL;
	size_t nr = 0;
	int err = report_rows(t->report, p, &rows, &nr, NULL);

	for (size_t i = 0; i < nr && !err; i++) {
		struct leaf *leaf;

		if (!m->value(&rows[i]))
			continue;
		err = array_reserve(t->leaves, t->max, t->nr + 1);
		if (err)
			return err;
		leaf = &t->leaves[t->nr++];
		*leaf = (struct leaf){ .value = m->value(&rows[i]) };
		err = report_frames(&leaf->stack, t->report, p, &rows[i]);
	}
	return err;
}

int massif_tree(FILE *out, const struct report *r, const struct report_process *p,
		const struct report_measure *m, u64 total)
{
	struct tree t = { .out = out, .report = r, .total = total };
	int err = add_leaves(&t, p, m);

	if (t.nr)
		qsort(t.leaves, t.nr, sizeof(*t.leaves), compare_leaves);
	if (!err)
		err = put_branch(&t, &(struct branch){ 0, t.nr, total }, 0);
	for (size_t i = 0; i < t.nr; i++)
		report_frames_fini(&t.leaves[i].stack);
	free(t.leaves);
	return err;
}

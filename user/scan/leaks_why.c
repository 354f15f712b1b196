/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Choose the blocks that get a chain: for callers whose blocks grow in number, one that is neither new nor old. */
#include "user/scan/leaks_why.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "user/heap/heap.h"
#include "user/scan/leaks.h"
#include "user/lib/cleanup.h"

#define GROWN (1ULL << 60) /* a caller that grew by a byte is worth more than any that did not grow */

/*
 * A caller that gets an example, and the block chosen so far. The youngest blocks mostly belong to a function that just
 * runs, and the oldest ones to the start of the program. A block in the middle shows where blocks end up.
 */
struct example {
	u32 row;
	enum scan_verdict verdict;
	u64 worth; /* bytes; callers that are worth most are chosen */
	u64 first_ns, last_ns;
	u64 distance_ns; /* between the time of the chosen block and the middle */
	taddr_t addr;	 /* of the chosen block, 0 = not chosen yet */
};

struct choice {
	const struct scan *scan;
	struct example *list; /* owned; in two parts, each with the worth most first */
	size_t nr;
	u32 *of_row; /* owned; index in list + 1, 0 = the row gets no example */
	size_t nr_rows;
};

void leak_why_fini(struct leak_why *why)
{
	free(why->root_path);
	free(why->steps);
	*why = (struct leak_why){ 0 };
}

const struct leak_why *leaks_why(const struct leaks *l, u32 row)
{
	for (size_t i = 0; l && i < l->nr_whys; i++)
		if (l->whys[i].row == row)
			return &l->whys[i];
	return NULL;
}

/* Keep @e if it is among the @max worth most of the list from @first on. */
static void leaks_why_offer(struct choice *c, size_t first, size_t max, const struct example *e)
{
	size_t i = c->nr;

	if (!e->worth || (c->nr - first == max && c->list[c->nr - 1].worth >= e->worth))
		return;
	if (c->nr - first < max)
		c->nr++;
	else
		i--;
	for (; i > first && c->list[i - 1].worth < e->worth; i--)
		c->list[i] = c->list[i - 1];
	c->list[i] = *e;
}

/* Choose callers with possible leaks, and callers of reachable blocks that have grown most since the last report. */
static void choose_rows(struct choice *c, const struct leaks *l, const struct leaks_options *o)
{
	size_t first;

	for (u32 row = 0; row < l->nr_rows; row++) {
		const struct scan_sums *sums = &l->rows[row].sums;
		struct example e = { .row = row, .verdict = SCAN_POSSIBLE };

		e.worth = sums->of[SCAN_POSSIBLE].bytes;
		if (e.worth >= sums->of[SCAN_REACHABLE].bytes)
			leaks_why_offer(c, 0, o->nr_whys, &e);
	}
	first = c->nr;
	for (u32 row = 0; row < l->nr_rows; row++) {
		const struct scan_sums *sums = &l->rows[row].sums;
		u64 before = row < o->nr_before ? o->before[row] : 0;
		struct example e = { .row = row, .verdict = SCAN_REACHABLE };

		e.worth = sums->of[SCAN_REACHABLE].bytes;
		if (e.worth > before)
			e.worth = e.worth - before + GROWN;
		if (sums->of[SCAN_POSSIBLE].bytes < sums->of[SCAN_REACHABLE].bytes)
			leaks_why_offer(c, first, o->nr_whys, &e);
	}
	for (size_t i = 0; i < c->nr; i++)
		c->of_row[c->list[i].row] = (u32)i + 1;
}

static struct example *example_of(const struct choice *c, u32 row)
{
	return row < c->nr_rows && c->of_row[row] ? &c->list[c->of_row[row] - 1] : NULL;
}

static int visit_ages(void *ctx, const struct heap_block *block)
{
	struct example *e = example_of(ctx, block->row);

	if (!e)
		return 0;
	if (!e->first_ns || block->time_ns < e->first_ns)
		e->first_ns = block->time_ns;
	if (block->time_ns > e->last_ns)
		e->last_ns = block->time_ns;
	return 0;
}

static int visit_middle(void *ctx, const struct heap_block *block)
{
	const struct choice *c = ctx;
	struct example *e = example_of(c, block->row);
	struct scan_block_info info;
	u64 middle, distance;

	if (!e)
		return 0;
	middle = e->first_ns + (e->last_ns - e->first_ns) / 2;
	distance = block->time_ns > middle ? block->time_ns - middle : middle - block->time_ns;
	if (e->addr && (distance > e->distance_ns || (distance == e->distance_ns && block->addr > e->addr)))
		return 0;
	if (!scan_find(c->scan, block->addr, &info) || info.verdict != e->verdict)
		return 0;
	e->addr = block->addr;
	e->distance_ns = distance;
	return 0;
}

static u32 leaks_why_row_of(const struct heap *heap, taddr_t addr)
{
	struct heap_block block;

	return heap_find(heap, addr, &block) ? block.row : WHY_NO_ROW;
}

static void keep_step(struct leak_why *why, const struct scan_step *step, u32 row)
{
	struct why_step *last = why->nr_steps ? &why->steps[why->nr_steps - 1] : NULL;
	const struct why_step new = { step->addr, step->size, step->offset, 1, row };
	const size_t half = WHY_MAX_STEPS / 2;

	if (last && row != WHY_NO_ROW && last->row == row) {
		u64 nr = last->nr;

		*last = new;
		last->nr += nr;
		return;
	}
	if (why->nr_steps == WHY_MAX_STEPS) {
		why->nr_left_out += why->steps[half].nr;
		memmove(&why->steps[half], &why->steps[half + 1], (half - 1) * sizeof(new));
		why->nr_steps--;
	}
	why->steps[why->nr_steps++] = new;
}

static int keep_chain(struct leak_why *why, const struct scan_chain *chain, const struct heap *heap)
{
	const struct scan_root *root = &chain->root;

	why->root = root->kind;
	why->root_addr = root->addr;
	why->root_tp = root->tp;
	why->root_tid = root->tid;
	why->root_where = root->where;
	why->steps = calloc(WHY_MAX_STEPS, sizeof(*why->steps));
	if (root->kind == ROOT_MEMORY || root->name)
		why->root_path = strdup(root->name ? root->name : root->map ? root->map->path : "");
	if (!why->steps || ((root->kind == ROOT_MEMORY || root->name) && !why->root_path))
		return -ENOMEM;
	for (size_t i = 0; i < chain->nr; i++)
		keep_step(why, &chain->steps[i], leaks_why_row_of(heap, chain->steps[i].addr));
	return 0;
}

/* Keep the chain of the block that contains @addr. No known chain is not an error. */
static int leaks_why_ask(struct leak_why *why, struct scan_whys *w, const struct leaks_options *o,
			 taddr_t addr)
{
	auto_free struct scan_chain *chain = NULL;
	int err = o->why ? o->why(o->ctx, addr, &chain) : scan_whys_find(w, addr, &chain);

	if (err)
		return err == -ENOENT ? 0 : err;
	return keep_chain(why, chain, o->heap);
}

static int ask_examples(struct leaks *l, struct scan_whys *w, struct choice *c, const struct leaks_options *o)
{
	int err = 0;

	l->whys = calloc(c->nr + 1, sizeof(*l->whys));
	if (!l->whys)
		return -ENOMEM;
	heap_for_each_block(o->heap, visit_ages, c);
	heap_for_each_block(o->heap, visit_middle, c);
	for (size_t i = 0; i < c->nr && !err; i++) {
		struct leak_why *why = &l->whys[l->nr_whys];

		if (!c->list[i].addr)
			continue;
		*why = (struct leak_why){ .row = c->list[i].row,
					  .verdict = c->list[i].verdict,
					  .addr = c->list[i].addr,
					  .word_size = l->word_size };
		l->nr_whys++;
		err = o->is_unwanted && o->is_unwanted() ? -ECANCELED : leaks_why_ask(why, w, o, why->addr);
		/* An answer that memory did not suffice for has a root without its name: nobody may read it. */
		if (err)
			leak_why_fini(&l->whys[--l->nr_whys]);
	}
	return err;
}

static int find_examples(struct leaks *l, struct scan *scan, struct scan_whys *w,
			 const struct leaks_options *o)
{
	struct choice c = { .scan = scan, .nr_rows = l->nr_rows };
	int err;

	c.list = calloc(2 * (size_t)o->nr_whys + 1, sizeof(*c.list));
	c.of_row = calloc(l->nr_rows + 1, sizeof(*c.of_row));
	if (c.list && c.of_row)
		choose_rows(&c, l, o);
	err = c.list && c.of_row ? ask_examples(l, w, &c, o) : -ENOMEM;
	free(c.list);
	free(c.of_row);
	return err;
}

/* Answer for the block that contains the address of the user. */
static int answer_asked(struct leak_why *why, const struct leaks *l, const struct scan *scan,
			struct scan_whys *w, const struct leaks_options *o)
{
	struct scan_block_info info;
	int err;

	*why = (struct leak_why){ .row = WHY_NO_ROW, .addr = o->why_addr, .word_size = l->word_size };
	if (!scan_find_around(scan, o->why_addr, &info))
		return 0;
	why->row = leaks_why_row_of(o->heap, info.addr);
	why->verdict = info.verdict;
	err = leaks_why_ask(why, w, o, info.addr);
	/* Without a chain, at least describe the block itself. */
	if (!err && !why->nr_steps) {
		const struct scan_step step = { .addr = info.addr, .size = info.size };

		why->steps = calloc(WHY_MAX_STEPS, sizeof(*why->steps));
		if (!why->steps)
			return -ENOMEM;
		keep_step(why, &step, why->row);
	}
	return err;
}

static int find_asked(struct leaks *l, const struct scan *scan, struct scan_whys *w,
		      const struct leaks_options *o)
{
	struct leak_why *why = calloc(1, sizeof(*why));
	int err = why ? answer_asked(why, l, scan, w, o) : -ENOMEM;

	if (!err) {
		l->asked = why;
		return 0;
	}
	if (why)
		leak_why_fini(why);
	free(why);
	return err;
}

int leaks_find_whys(struct leaks *l, struct scan *scan, const struct leaks_options *options)
{
	struct scan_whys *w = NULL;
	int err;

	if (!options->nr_whys && !options->why_addr)
		return 0;
	err = options->why ? 0 : scan_whys_new(&w, scan);
	if (err)
		return err;
	if (options->nr_whys)
		err = find_examples(l, scan, w, options);
	if (!err && options->why_addr)
		err = find_asked(l, scan, w, options);
	scan_whys_free(w);
	return err;
}

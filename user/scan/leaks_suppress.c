/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Apply suppressions to verdicts: name the stacks of callers, match them with rules, set their leaks aside. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "user/scan/leaks.h"
#include "user/scan/leaks_suppress.h"
#include "user/lib/cleanup.h"
#include "user/heap/stacks.h"
#include "user/scan/suppress.h"
#include "user/names/symbolize.h"

/* 4 times, because each inlined call is a frame of its own. */
enum { MAX_FRAMES = 4 * STACK_MAX_FRAMES };

/* Verdicts that rules can suppress. */
static const enum scan_verdict kinds[] = { SCAN_DEFINITE, SCAN_INDIRECT, SCAN_POSSIBLE };

struct frames {
	struct suppress_frame list[MAX_FRAMES];
	size_t nr;
};

static int leaks_suppress_add_place(struct frames *f, const struct leaks_names *names, struct code_ref ref)
{
	const struct module *m = module_get(names->modules, ref.module);
	const struct symbol unknown = { 0 }, *symbols = &unknown;
	size_t nr = 1;
	int err = names->symbolizer ? symbolize(names->symbolizer, ref, &symbols, &nr) : 0;

	for (size_t i = 0; !err && i < nr && f->nr < MAX_FRAMES; i++)
		f->list[f->nr++] = (struct suppress_frame){
			.function = symbols[i].function,
			.file = symbols[i].file,
			.object = m ? m->path : NULL,
		};
	return err;
}

/* The stack of a row as rules match it: the first frame is the allocator's function. */
static int make_frames(struct frames *f, const struct leaks_names *names, u32 row)
{
	struct heap_row h = heap_row_get(names->heap, row);
	const struct alloc_fn *fn = alloc_fn(heap_functions(names->heap), h.fn);
	const struct stack *stack = stack_get(names->stacks, h.stack);
	int err = 0;

	f->nr = 1;
	f->list[0] = (struct suppress_frame){ .function = fn->first ? fn->first : fn->name,
					      .linkage = fn->second ? fn->second : fn->symbol };
	for (size_t i = 0; stack && i < stack->nr_frames && !err; i++)
		err = leaks_suppress_add_place(f, names, stack->frames[i]);
	return err;
}

static bool has_leaks(const struct leak_row *row)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (row->sums.of[kinds[i]].blocks)
			return true;
	return false;
}

static void leaks_suppress_add(struct scan_sum *to, const struct scan_sum *sum)
{
	to->blocks += sum->blocks;
	to->bytes += sum->bytes;
}

static void leaks_suppress_take(struct scan_sum *from, const struct scan_sum *sum)
{
	from->blocks -= sum->blocks;
	from->bytes -= sum->bytes;
}

/* Move @sum of @verdict from row @row to the suppressed sums. @sum may be the row's own. */
static void set_aside(struct leaks *l, u32 row, enum scan_verdict verdict, struct scan_sum sum)
{
	struct leak_row *r = &l->rows[row];

	leaks_suppress_take(&r->sums.of[verdict], &sum);
	leaks_suppress_take(&l->result.sums.of[verdict], &sum);
	leaks_suppress_add(&r->suppressed, &sum);
	leaks_suppress_add(&l->suppressed, &sum);
}

/* Blocks that were lost through a suppressed definite block are suppressed too. */
static void set_links_aside(struct leaks *l, const u8 *matched)
{
	for (size_t i = 0; i < l->nr_links; i++) {
		struct leak_link *link = &l->links[i];

		if (!(matched[link->leader] & SUPPRESS_KIND(SCAN_DEFINITE)) &&
		    !(matched[link->row] & SUPPRESS_KIND(SCAN_INDIRECT)))
			continue;
		set_aside(l, link->row, SCAN_INDIRECT, link->sum);
		leaks_suppress_take(&l->rows[link->leader].through, &link->sum);
		link->sum = (struct scan_sum){ 0 };
	}
}

static u8 match_row(const struct leak_row *row, const struct suppress_list *list, const struct frames *f)
{
	u8 matched = 0;

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (row->sums.of[kinds[i]].blocks && suppress_match(list, kinds[i], f->list, f->nr) >= 0)
			matched |= SUPPRESS_KIND(kinds[i]);
	return matched;
}

int leaks_suppress(struct leaks *l, const struct suppress_list *list, const struct leaks_names *names)
{
	auto_free struct frames *f = malloc(sizeof(*f));
	auto_free u8 *matched = calloc(l->nr_rows + 1, 1);

	if (!f || !matched)
		return -ENOMEM;
	if (!list || !suppress_count(list))
		return 0;
	for (u32 i = 0; i < l->nr_rows; i++) {
		if (!has_leaks(&l->rows[i]))
			continue;
		if (make_frames(f, names, i))
			return -ENOMEM;
		matched[i] = match_row(&l->rows[i], list, f);
	}
	set_links_aside(l, matched);
	for (u32 i = 0; i < l->nr_rows; i++)
		for (size_t k = 0; k < ARRAY_SIZE(kinds); k++)
			if (matched[i] & SUPPRESS_KIND(kinds[k]))
				set_aside(l, i, kinds[k], l->rows[i].sums.of[kinds[k]]);
	return 0;
}

int leaks_write_suppressions(FILE *out, const struct leaks *l, const struct leaks_names *names)
{
	static const enum scan_verdict written[] = { SCAN_DEFINITE, SCAN_POSSIBLE };
	auto_free struct frames *f = malloc(sizeof(*f));
	int err = f ? 0 : -ENOMEM;
	u32 number = 0;

	for (u32 i = 0; i < l->nr_rows && !err; i++) {
		if (!has_leaks(&l->rows[i]))
			continue;
		err = make_frames(f, names, i);
		for (size_t k = 0; k < ARRAY_SIZE(written) && !err; k++) {
			char name[32];

			if (!l->rows[i].sums.of[written[k]].blocks)
				continue;
			snprintf(name, sizeof(name), "leak-%u", ++number);
			err = suppress_write(out, name, written[k], f->list, f->nr);
		}
	}
	return err;
}

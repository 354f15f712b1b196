/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by all report formats: the rows and their order, stacks, names. */
#include "user/report/report.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "user/heap/misuse.h"
#include "user/scan/leaks.h"
#include "user/scan/leaks_why.h"
#include "user/lib/cleanup.h"
#include "user/lib/escape.h"
#include "user/report/library_code.h"
#include "user/report/own_code.h"
#include "user/report/report_parts.h"
#include "user/report/report_text.h"
#include "user/report/short_name.h"
#include "user/source/source.h"
#include "user/heap/stacks.h"
#include "user/heap/thread_table.h"
#include "user/lib/path.h"
#include "user/names/symbolize.h"
#include "user/target/target.h"

enum { MAX_CALLERS = 2, MAX_CALLER_NAME = 200, CALLER_WIDTH = 60 };

u64 report_number(const struct report_row *r, enum row_number number)
{
	const struct scan_sum *of = r->leaks.sums.of, lost = leaks_lost(&r->leaks);
	const u64 numbers[NR_ROW_NUMBERS] = {
		[ROW_LIVE_BYTES] = r->row.live_bytes,
		[ROW_LIVE_BLOCKS] = r->row.live_blocks,
		[ROW_TOTAL_BYTES] = r->row.alloc_bytes,
		[ROW_TOTAL_BLOCKS] = r->row.allocs,
		[ROW_LOST_BYTES] = lost.bytes,
		[ROW_LOST_BLOCKS] = lost.blocks,
		[ROW_LEAKED_BYTES] = of[SCAN_DEFINITE].bytes + of[SCAN_INDIRECT].bytes,
		[ROW_LEAKED_BLOCKS] = of[SCAN_DEFINITE].blocks + of[SCAN_INDIRECT].blocks,
		[ROW_POSSIBLE_BYTES] = of[SCAN_POSSIBLE].bytes,
		[ROW_PEAK] = r->row.peak_bytes,
		[ROW_TEMPORARY] = r->row.temporary,
		[ROW_MISMATCHED] = r->mismatched,
		[ROW_BAD] = r->bad,
		[ROW_GROWTH] = r->grown > 0 ? (u64)r->grown : 0,
		[ROW_AGE] = r->oldest_ns,
	};

	return numbers[number];
}

enum { KEY_LIVE_BYTES, KEY_LIVE_BLOCKS, KEY_TOTAL_BYTES };

const struct report_key report_keys[] = {
	[KEY_LIVE_BYTES] = { "live-bytes", "live bytes", ROW_LIVE_BYTES, .is_of_live = true },
	[KEY_LIVE_BLOCKS] = { "live-blocks", "live blocks", ROW_LIVE_BLOCKS, .is_of_live = true },
	[KEY_TOTAL_BYTES] = { "total-bytes", "bytes allocated", ROW_TOTAL_BYTES },
	{ "total-blocks", "blocks allocated", ROW_TOTAL_BLOCKS },
	{ "average", "average size", ROW_TOTAL_BYTES, .is_average = true, .human = human_bytes,
	  .label = "on average" },
	{ "leaked-bytes", "bytes leaked", ROW_LOST_BYTES, .is_of_live = true, .wants_scan = true,
	  .human = human_bytes, .label = "leaked" },
	{ "leaked-blocks", "blocks leaked", ROW_LOST_BLOCKS, .is_of_live = true, .wants_scan = true,
	  .human = human_count, .label = "leaked" },
	{ "peak", "bytes at the peak", ROW_PEAK, .human = human_bytes, .label = "at the peak" },
	{ "temporary", "temporary blocks", ROW_TEMPORARY, .human = human_count, .label = "temporary" },
	{ "mismatched", "mismatched releases of their blocks", ROW_MISMATCHED, .human = human_count,
	  .label = "released wrongly" },
	{ "badfree", "releases of what is no block", ROW_BAD, .human = human_count, .label = "bad releases" },
	{ "growth", "growth", ROW_GROWTH, .is_of_live = true, .human = human_bytes, .label = "grown" },
	{ "age", "age of the oldest live block", ROW_AGE, .is_of_live = true, .wants_blocks = true,
	  .human = human_duration, .label = "old" },
	{ NULL },
};

const struct report_key *report_key_find(const char *name)
{
	for (const struct report_key *k = report_keys; k->name; k++)
		if (!strcmp(k->name, name))
			return k;
	return NULL;
}

double report_key_value(const struct report_key *key, const struct report_row *row)
{
	double value = (double)report_number(row, key->number);

	return key->is_average && row->row.allocs ? value / (double)row->row.allocs : value;
}

/* A walk over all live blocks, which adds numbers to the rows. */
struct block_pass {
	const struct report *report;
	struct report_row *rows;
	size_t nr;
};

static bool report_has_filter(const struct report_options *o)
{
	return o->min_size || o->max_size || o->older_ns;
}

bool report_has_block(const struct report *r, const struct heap_block *b)
{
	const struct report_options *o = &r->options;

	if (b->size < o->min_size || (o->max_size && b->size > o->max_size))
		return false;
	return !o->older_ns || (r->time_ns > b->time_ns && r->time_ns - b->time_ns >= o->older_ns);
}

static int report_visit_block(void *ctx, const struct heap_block *block)
{
	const struct block_pass *pass = ctx;
	const struct report_options *o = &pass->report->options;
	u64 now = pass->report->time_ns;
	struct report_row *r;

	if (block->row >= pass->nr || !report_has_block(pass->report, block))
		return 0;
	r = &pass->rows[block->row];
	if (report_has_filter(o)) {
		r->row.live_blocks++;
		r->row.live_bytes += block->size;
	}
	if (now > block->time_ns && now - block->time_ns > r->oldest_ns)
		r->oldest_ns = now - block->time_ns;
	return 0;
}

static void look_at_blocks(const struct report *r, const struct heap *heap, struct report_row *rows,
			   size_t nr)
{
	struct block_pass pass = { r, rows, nr };

	if (report_has_filter(&r->options))
		for (size_t i = 0; i < nr; i++)
			rows[i].row.live_blocks = rows[i].row.live_bytes = 0;
	heap_for_each_block(heap, report_visit_block, &pass);
}

/* Count mismatches for the caller that allocated, and any other wrong release for the caller that released. */
static void count_misuses(const struct heap *heap, struct report_row *rows, size_t nr)
{
	size_t nr_misuses;
	const struct misuse *list = heap_misuses(heap, &nr_misuses);

	/* Without misuses there is no list. */
	for (size_t i = 0; i < nr_misuses; i++) {
		const struct misuse *m = &list[i];

		if (misuse_is_mismatch(m->kind) && m->alloc_row < nr)
			rows[m->alloc_row].mismatched += m->count;
		if (!misuse_is_mismatch(m->kind) && m->free_row < nr)
			rows[m->free_row].bad += m->count;
	}
}

static int compare_double(double a, double b)
{
	return a < b ? 1 : a > b ? -1 : 0;
}

static int report_compare_u64(u64 a, u64 b)
{
	return a < b ? 1 : a > b ? -1 : 0;
}

/* Order equal rows independently of the order of events, so that reports of two sources can be compared. */
static int report_compare_rows(const void *pa, const void *pb, void *ctx)
{
	const struct report_row *a = pa;
	const struct report_row *b = pb;
	const struct report_key *key = ctx;
	int cmp = compare_double(report_key_value(key, a), report_key_value(key, b));

	if (!cmp)
		cmp = report_compare_u64(a->row.live_bytes, b->row.live_bytes);
	if (!cmp)
		cmp = report_compare_u64(a->row.alloc_bytes, b->row.alloc_bytes);
	if (!cmp)
		cmp = report_compare_u64(b->row.stack, a->row.stack);
	return cmp ? cmp : report_compare_u64(b->row.fn, a->row.fn);
}

static bool is_anything_live(const struct report_row *rows, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		if (rows[i].row.live_blocks)
			return true;
	return false;
}

int report_rows(const struct report *r, const struct report_process *p, struct report_row **rows, size_t *nr,
		const struct report_key **key_out)
{
	const struct report_key *key = r->options.sort ? r->options.sort : &report_keys[KEY_LIVE_BYTES];
	size_t count = heap_row_count(p->heap);
	auto_free struct report_row *list = calloc(count + 1, sizeof(*list));

	if (!list)
		return -ENOMEM;
	if (key->wants_scan && !p->leaks)
		key = &report_keys[KEY_LIVE_BYTES];
	for (size_t i = 0; i < count; i++) {
		list[i].id = (u32)i;
		list[i].row = heap_row_get(p->heap, i);
		list[i].leaks = leaks_row(p->leaks, i);
		list[i].grown = (s64)(list[i].row.live_bytes - (i < p->nr_reported ? p->reported[i] : 0));
	}
	for (size_t i = 0; p->leaks && i < p->leaks->nr_whys; i++)
		if (p->leaks->whys[i].row < count)
			list[p->leaks->whys[i].row].why = &p->leaks->whys[i];
	count_misuses(p->heap, list, count);
	if (key->wants_blocks || report_has_filter(&r->options))
		look_at_blocks(r, p->heap, list, count);
	if (r->options.only) {
		list[0] = list[r->options.only <= count ? r->options.only - 1 : count];
		count = r->options.only <= count;
	}
	if (key->is_of_live && !is_anything_live(list, count))
		key = &report_keys[KEY_TOTAL_BYTES];
	qsort_r(list, count, sizeof(*list), report_compare_rows, (void *)key);
	*rows = take_ptr(list);
	*nr = count;
	if (key_out)
		*key_out = key;
	return 0;
}

static int compare_leaks(const void *pa, const void *pb, void *ctx)
{
	const struct report_row *a = pa;
	const struct report_row *b = pb;
	const struct report_key *key = ctx;
	int cmp = key->wants_scan ? compare_double(report_key_value(key, a), report_key_value(key, b)) : 0;

	if (!cmp)
		cmp = report_compare_u64(leaks_lost(&a->leaks).bytes, leaks_lost(&b->leaks).bytes);
	if (!cmp)
		cmp = report_compare_u64(a->leaks.sums.of[SCAN_POSSIBLE].bytes,
					 b->leaks.sums.of[SCAN_POSSIBLE].bytes);
	return cmp ? cmp : report_compare_rows(pa, pb, ctx);
}

int report_leak_rows(const struct report_row *rows, size_t nr, const struct report_key *key,
		     struct report_row **leaks, size_t *nr_leaks)
{
	auto_free struct report_row *list = calloc(nr + 1, sizeof(*list));
	size_t count = 0;

	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < nr; i++)
		if (rows[i].leaks.sums.of[SCAN_DEFINITE].blocks ||
		    rows[i].leaks.sums.of[SCAN_POSSIBLE].blocks)
			list[count++] = rows[i];
	qsort_r(list, count, sizeof(*list), compare_leaks, (void *)key);
	*leaks = take_ptr(list);
	*nr_leaks = count;
	return 0;
}

const struct stack *report_stack(const struct report_process *p, const struct report_row *row,
				 const char **truncated)
{
	const struct stack *s = NULL;

	if (row->row.stack == STACK_NONE) {
		*truncated = "none";
		return NULL;
	}
	if (row->row.stack != STACK_LOST)
		s = stack_get(p->stacks, row->row.stack);
	if (!s)
		*truncated = "lost";
	else
		*truncated = s->end == STACK_COMPLETE ? NULL : stack_end_word(s->end);
	return s;
}

/* Sums of live blocks, by thread. */
struct thread_pass {
	struct scan_sum *live;
	size_t nr;
};

static int visit_for_thread(void *ctx, const struct heap_block *block)
{
	const struct thread_pass *pass = ctx;

	if (block->thread < pass->nr) {
		pass->live[block->thread].blocks++;
		pass->live[block->thread].bytes += block->size;
	}
	return 0;
}

const char *report_thread_name(const struct report_process *p, const struct thread_row *row)
{
	if (row->name[0] || (pid_t)row->tid != p->target->pid)
		return row->name[0] ? row->name : NULL;
	return p->target->comm[0] ? p->target->comm : NULL;
}

int report_threads(const struct report_process *p, struct scan_sum **live)
{
	struct thread_pass pass = { .nr = 1 }; /* the last one may come without a row */
	struct thread_row row;

	while (heap_thread(p->heap, pass.nr - 1, &row))
		pass.nr++;
	pass.live = calloc(pass.nr, sizeof(*pass.live));
	if (!pass.live)
		return -ENOMEM;
	heap_for_each_block(p->heap, visit_for_thread, &pass);
	*live = pass.live;
	return 0;
}

u64 report_window_permille(const struct report_window *w)
{
	if (!w->number || !w->seen_ns || w->whole_ns <= w->seen_ns)
		return 1000;
	return (u64)((double)w->whole_ns * 1000 / (double)w->seen_ns);
}

u64 report_calls(const struct heap *heap, u16 fn)
{
	const struct alloc_table *fns = heap_functions(heap);
	const char *name = alloc_fn(fns, fn)->name;
	u64 calls = 0;

	for (size_t i = 1; i < alloc_fn_count(fns); i++) {
		if (strcmp(alloc_fn(fns, i)->name, name))
			continue;
		if (i < fn)
			return 0;
		calls += heap_calls(heap, i);
	}
	return calls;
}

struct losses report_losses(const struct report_process *p)
{
	struct losses lost = *p->losses;

	lost.other += heap_lost(p->heap);
	return lost;
}

int report_symbols(const struct report *r, struct code_ref ref, const struct symbol **symbols, size_t *nr)
{
	static const struct symbol unknown, folded = { .function = "[folded callers]" };

	if (r->options.is_unwanted && r->options.is_unwanted())
		return -ECANCELED;
	if (code_ref_is_folded(ref)) {
		*symbols = &folded;
		*nr = 1;
		return 0;
	}
	if (r->symbolizer)
		return symbolize(r->symbolizer, ref, symbols, nr);
	*symbols = &unknown;
	*nr = 1;
	return 0;
}

static bool report_is_same_text(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

/* Do frames at @a and @b have the same functions and lines? Without names: are they one place? */
static bool report_is_same_frame(const struct report *r, struct code_ref a, struct code_ref b)
{
	const struct symbol *x, *y;
	size_t nr, nr_others, k = 0;

	if (a.module != b.module || a.offset == b.offset)
		return a.module == b.module;
	if (report_symbols(r, a, &x, &nr) || report_symbols(r, b, &y, &nr_others) || nr != nr_others)
		return false;
	while (k < nr && x[k].function && report_is_same_text(x[k].function, y[k].function) &&
	       report_is_same_text(x[k].file, y[k].file) && x[k].line == y[k].line)
		k++;
	return k == nr;
}

struct report_turning {
	const struct report *report;
	const struct code_ref *frames;
};

static bool report_turns_are_same(const void *ctx, size_t a, size_t b)
{
	const struct report_turning *t = ctx;

	return report_is_same_frame(t->report, t->frames[a], t->frames[b]);
}

struct turns report_turns(const struct report *r, const struct stack *s, size_t i, size_t end)
{
	const struct report_turning t = { r, s->frames + i };

	return turns_find(end - i, report_turns_are_same, &t);
}

void report_turns_more(FILE *out, const char *indent, size_t nr_lines, struct turns turns)
{
	if (turns.times > 1 && nr_lines > 1)
		fprintf(out, "%s... and these %zu lines %u times more\n", indent, nr_lines, turns.times - 1);
	else if (turns.times > 1)
		fprintf(out, "%s... and %u times more\n", indent, turns.times - 1);
}

/* Show the offset of a function without a name: readers would take the name of a function further out for it. */
static const char *caller_name(const struct report *r, struct code_ref ref, const struct symbol *s, char *buf,
			       size_t size)
{
	const struct module *m = module_get(r->modules, ref.module);
	char name[MAX_CALLER_NAME];

	if (!IS_AGENT && s->function)
		return short_name(buf, size, s->function, CALLER_WIDTH);
	if (m)
		snprintf(buf, size, "%s+0x%llx", escape_buf(name, sizeof(name), path_name(module_name(m))),
			 (unsigned long long)ref.offset);
	else
		snprintf(buf, size, "0x%llx", (unsigned long long)ref.offset);
	return buf;
}

/* Around the place @from that is the program's own, functions of the library of its language say nothing. */
static bool caller_is_told(const struct own_code *from, const struct symbol *s)
{
	if (IS_AGENT || !from->symbol || !from->symbol->function || !s->function)
		return true;
	return !library_is_function(s) || library_is_function(from->symbol);
}

/* Does @names end with @name? A function that calls itself, or whose inlined parts have its name, stands once. */
static bool caller_is_repeated(const char *names, const char *name)
{
	size_t len = strlen(names), own = strlen(name);

	return !IS_AGENT && len >= own && !strcmp(names + len - own, name) &&
	       (len == own || (len >= own + 3 && !strncmp(names + len - own - 3, " < ", 3)));
}

/*
 * Join the names of @max functions of the stack @id, from the frame @from outwards; those before were @told.
 */
static int join_callers(const struct report *r, const struct report_process *p, u64 id,
			const struct own_code *from, const char *told, int max, char *text, size_t size)
{
	const struct stack *stack = stack_get(p->stacks, id);
	size_t used = 0, turn_end = 0, next = from->frame;
	int shown = 0;

	*text = '\0';
	for (size_t i = from->frame; stack && i < stack->nr_frames && shown < max; i++) {
		const struct symbol *symbols;
		char name[MAX_CALLER_NAME + 32];
		size_t nr;
		int err;

		/* Of recursion, one turn. */
		if (!IS_AGENT && i == next) {
			struct turns turns = report_turns(r, stack, i, stack->nr_frames);

			turn_end = i + turns.nr;
			next = i + (size_t)turns.nr * turns.times;
		}
		if (!IS_AGENT && i >= turn_end)
			continue;
		err = report_symbols(r, stack->frames[i], &symbols, &nr);
		if (err)
			return err;
		/* The start of each program says nothing to a reader of its own code. */
		if (!IS_AGENT && from->symbol && i > from->frame && symbols[0].function &&
		    library_is_start(symbols[0].function))
			break;
		for (size_t k = i == from->frame ? from->inlined : 0; k < nr && shown < max && used < size;
		     k++) {
			if (!caller_is_told(from, &symbols[k]))
				continue;
			caller_name(r, stack->frames[i], &symbols[k], name, sizeof(name));
			if (caller_is_repeated(shown ? text : told, name))
				continue;
			used += (size_t)snprintf(text + used, size - used, "%s%s", shown ? " < " : "", name);
			shown++;
		}
	}
	return 0;
}

/* Join the names of @max functions, from that of the program's own code outwards. */
static int join_own_callers(const struct report *r, const struct report_process *p, u64 id, int max,
			    char *text, size_t size)
{
	struct own_code from = { .frame = 0 };
	int err = IS_AGENT ? 0 : own_code_find(r, p, id, &from);

	*text = '\0';
	return err ? err : join_callers(r, p, id, &from, "", max, text, size);
}

int report_callers(const struct report *r, const struct report_process *p, u32 id, char *text, size_t size)
{
	return join_own_callers(r, p, heap_row_get(p->heap, id).stack, MAX_CALLERS, text, size);
}

int report_own_callers(const struct report *r, const struct report_process *p, u32 id, char *text,
		       size_t size)
{
	u64 stack = heap_row_get(p->heap, id).stack;
	char place[OWN_PLACE_MAX], name[MAX_CALLER_NAME + 32] = "";
	struct own_code own;
	size_t used;
	int err = IS_AGENT ? -ENOSYS : own_code_find(r, p, stack, &own);

	if (err)
		return err;
	if (!IS_AGENT)
		snprintf(text, size, "%s", own_code_text(r, &own, place));
	used = strlen(text);
	if (!IS_AGENT && own.symbol)
		caller_name(r, stack_get(p->stacks, stack)->frames[own.frame], own.symbol, name,
			    sizeof(name));
	own.inlined++;
	if (!used || used + sizeof(" < ") > size)
		return 0;
	err = join_callers(r, p, stack, &own, name, INT_MAX, text + used + 3, size - used - 3);
	if (text[used + 3])
		memcpy(text + used, " < ", 3);
	return err;
}

int report_stack_callers(const struct report *r, const struct report_process *p, u64 stack, char *text,
			 size_t size)
{
	return join_own_callers(r, p, stack, MAX_CALLERS, text, size);
}

int report_all_callers(const struct report *r, const struct report_process *p, u32 id, char *text,
		       size_t size)
{
	static const struct own_code innermost;

	return join_callers(r, p, heap_row_get(p->heap, id).stack, &innermost, "", INT_MAX, text, size);
}

void report_name(FILE *out, const struct target *t)
{
	char comm[4 * TARGET_COMM_LEN];

	fprintf(out, "%s (pid %d)\n", escape_buf(comm, sizeof(comm), t->comm), (int)t->pid);
}

void report_function(FILE *out, const struct report_process *p, u16 fn)
{
	escape_text(out, alloc_fn(heap_functions(p->heap), fn)->name);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes one process into the data of the HTML report: sums, callers, chains of pointers, sizes and ages of blocks. */
#include "user/report/html_process.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "user/heap/misuse.h"
#include "user/heap/slices.h"
#include "user/lib/array.h"
#include "user/lib/cleanup.h"
#include "user/lib/json.h"
#include "user/report/estimate.h"
#include "user/report/own_code.h"
#include "user/report/report.h"
#include "user/report/report_json.h"
#include "user/report/report_parts.h"
#include "user/report/report_rows.h"
#include "user/report/report_verdict.h"
#include "user/report/report_why.h"
#include "user/scan/leaks.h"

/* Writes what callers did in slices of time into the data of the HTML report, in bounded space. */

/* Numbers of all callers in all slices: about 12 bytes of the page for each. */
enum { MAX_CELLS = 50000 };

/* A caller in a slice. */
struct slice_cell {
	u32 caller; /* its place in the report */
	struct slice_counts counts;
};

struct slice_writer {
	struct json *json;
	const struct heap *heap;
	u32 *caller_of; /* owned; for each row of the heap: its place in the report; the number of callers = others */
	u32 nr_rows, others;
	u32 *cells_of; /* owned; how many slices each caller is in */
	u64 nr_cells;
	struct slice_cell *cells; /* owned; of the slice that is being written */
	size_t nr, max;
};

static int html_slices_count_cell(void *ctx, u32 row, const struct slice_counts *counts)
{
	struct slice_writer *w = ctx;

	(void)counts;
	if (row < w->nr_rows) {
		w->cells_of[w->caller_of[row]]++;
		w->nr_cells++;
	}
	return 0;
}

static int by_size(const void *a, const void *b)
{
	const struct heap_row *x = &(*(const struct report_row *const *)a)->row;
	const struct heap_row *y = &(*(const struct report_row *const *)b)->row;

	return (x->alloc_bytes < y->alloc_bytes) - (x->alloc_bytes > y->alloc_bytes);
}

/* Make callers that allocated least others, until the rest has room. */
static int html_slices_leave_out(struct slice_writer *w, const struct report_row *rows, size_t nr)
{
	auto_free const struct report_row **largest = calloc(nr + 1, sizeof(const struct report_row *));
	u64 room = MAX_CELLS;

	if (!largest)
		return -ENOMEM;
	for (size_t i = 0; i < nr; i++)
		largest[i] = &rows[i];
	qsort(largest, nr, sizeof(const struct report_row *), by_size);
	for (size_t i = 0; i < nr; i++) {
		u64 cells = w->cells_of[largest[i] - rows];

		if (cells > room)
			w->caller_of[largest[i]->id] = w->others;
		room = cells > room ? 0 : room - cells;
	}
	return 0;
}

static int take_cell(void *ctx, u32 row, const struct slice_counts *counts)
{
	struct slice_writer *w = ctx;
	u32 caller = row < w->nr_rows ? w->caller_of[row] : w->others;
	struct slice_counts *sum;

	if (array_reserve(w->cells, w->max, w->nr + 1))
		return -ENOMEM;
	/* The first cell is that of the others. */
	if (caller != w->others) {
		w->cells[w->nr++] = (struct slice_cell){ caller, *counts };
		return 0;
	}
	sum = &w->cells[0].counts;
	sum->allocs += counts->allocs;
	sum->frees += counts->frees;
	sum->alloc_bytes += counts->alloc_bytes;
	sum->live_bytes += counts->live_bytes;
	return 0;
}

static int by_caller(const void *a, const void *b)
{
	const struct slice_cell *x = a, *y = b;

	return (x->caller > y->caller) - (x->caller < y->caller);
}

/* How far the caller is behind the one before. */
static s64 get_step(const void *ctx, size_t i)
{
	const struct slice_cell *c = ctx;

	return i ? (s64)c[i].caller - (s64)c[i - 1].caller : (s64)c[i].caller;
}

static s64 get_allocs(const void *ctx, size_t i)
{
	return (s64)((const struct slice_cell *)ctx)[i].counts.allocs;
}

static s64 get_alloc_bytes(const void *ctx, size_t i)
{
	return (s64)((const struct slice_cell *)ctx)[i].counts.alloc_bytes;
}

static s64 get_live_bytes(const void *ctx, size_t i)
{
	return ((const struct slice_cell *)ctx)[i].counts.live_bytes;
}

static int write_slice(struct slice_writer *w, u32 i, u64 begin_ns)
{
	const struct slice_counts *others;
	struct slice_cell *cells;
	size_t nr;
	int err;

	if (array_reserve(w->cells, w->max, 1))
		return -ENOMEM;
	w->cells[0] = (struct slice_cell){ .caller = w->others };
	w->nr = 1;
	err = heap_slice_visit(w->heap, i, take_cell, w);
	if (err)
		return err;
	others = &w->cells[0].counts;
	cells = w->cells;
	nr = w->nr;
	if (!others->allocs && !others->frees) {
		cells++;
		nr--;
	}
	qsort(cells, nr, sizeof(*cells), by_caller);
	json_object_begin(w->json, NULL);
	json_u64(w->json, "time_ns", begin_ns);
	json_u64(w->json, "nr", nr);
	html_numbers(w->json, "caller", nr, get_step, cells);
	html_numbers(w->json, "allocs", nr, get_allocs, cells);
	html_numbers(w->json, "alloc_bytes", nr, get_alloc_bytes, cells);
	html_numbers(w->json, "live_bytes", nr, get_live_bytes, cells);
	json_object_end(w->json);
	return 0;
}

static int html_slices_write_all(struct slice_writer *w, const struct report_row *rows, size_t nr)
{
	u64 begin_ns;
	int err = 0;

	for (u32 i = 0; i < w->nr_rows; i++)
		w->caller_of[i] = w->others;
	for (size_t i = 0; i < nr; i++)
		w->caller_of[rows[i].id] = (u32)i;
	for (u32 i = 0; heap_slice(w->heap, i, &begin_ns); i++)
		heap_slice_visit(w->heap, i, html_slices_count_cell, w);
	if (w->nr_cells > MAX_CELLS)
		err = html_slices_leave_out(w, rows, nr);
	json_array_begin(w->json, "slices");
	for (u32 i = 0; heap_slice(w->heap, i, &begin_ns) && !err; i++)
		err = write_slice(w, i, begin_ns);
	json_array_end(w->json);
	return err;
}

/*
 * Write the key "slices" of @p, whose callers are @rows: for each slice its beginning, and numbers of callers by their
 * places in @rows. Callers that would make the page too large are added up as caller @nr. 0 or -ENOMEM.
 */
static int html_slices(struct json *j, const struct report_process *p, const struct report_row *rows,
		       size_t nr)
{
	struct slice_writer w = {
		.json = j, .heap = p->heap, .nr_rows = (u32)heap_row_count(p->heap), .others = (u32)nr
	};
	u64 begin_ns;
	int err;

	if (!heap_slice(p->heap, 0, &begin_ns))
		return 0;
	w.caller_of = calloc((size_t)w.nr_rows + 1, sizeof(*w.caller_of));
	w.cells_of = calloc(nr + 1, sizeof(*w.cells_of));
	err = w.caller_of && w.cells_of ? html_slices_write_all(&w, rows, nr) : -ENOMEM;
	free(w.caller_of);
	free(w.cells_of);
	free(w.cells);
	return err;
}

/* The callers of a process, in the order of the report. */
struct callers {
	struct report_row *rows; /* owned */
	size_t nr;
	u32 *nodes, *truncated; /* owned; of each row: its stack, and why the stack is cut */
	u32 *places; /* owned; of each row: the number of the frame that names it (user/report/own_code.h) */
	struct caller_ids ids;
};

static void html_process_callers_fini(struct callers *c)
{
	free(c->rows);
	free(c->nodes);
	free(c->truncated);
	free(c->places);
	caller_ids_fini(&c->ids);
}

static int html_process_callers_init(struct callers *c, struct html_tables *t, const struct report *r,
				     const struct report_process *p)
{
	int err = report_rows(r, p, &c->rows, &c->nr, NULL);

	if (!err)
		err = caller_ids_init(&c->ids, r, p);
	if (err)
		return err;
	c->nodes = calloc(c->nr + 1, sizeof(*c->nodes));
	c->truncated = calloc(c->nr + 1, sizeof(*c->truncated));
	c->places = calloc(c->nr + 1, sizeof(*c->places));
	if (!c->nodes || !c->truncated || !c->places)
		return -ENOMEM;
	for (size_t i = 0; i < c->nr && !err; i++) {
		const char *truncated;
		struct own_code place = { .symbol = NULL };

		err = html_stack(t, r, p, &c->rows[i], &c->nodes[i], &truncated);
		if (!err)
			err = html_text(t, truncated, &c->truncated[i]);
		if (!err)
			err = own_code_find(r, p, c->rows[i].row.stack, &place);
		if (!err)
			c->places[i] = place.symbol ? place.number : HTML_NONE;
	}
	return err;
}

/* A column of numbers. Each is a u64 or s64 of struct report_row. */
struct column {
	const char *name;
	size_t field;
};

#define SUM(verdict, name)                                                                                   \
	{ name "_blocks", offsetof(struct report_row, leaks.sums.of[verdict].blocks) },                      \
	{                                                                                                    \
		name "_bytes", offsetof(struct report_row, leaks.sums.of[verdict].bytes)                     \
	}
#define FIELD(name, field)                                                                                   \
	{                                                                                                    \
		name, offsetof(struct report_row, field)                                                     \
	}

static const struct column columns[] = {
	FIELD("allocs", row.allocs),
	FIELD("frees", row.frees),
	FIELD("alloc_bytes", row.alloc_bytes),
	FIELD("live_blocks", row.live_blocks),
	FIELD("live_bytes", row.live_bytes),
	FIELD("peak_bytes", row.peak_bytes),
	FIELD("temporary", row.temporary),
	FIELD("grown", grown),
	FIELD("mismatched", mismatched),
	FIELD("bad", bad),
	SUM(SCAN_DEFINITE, "definite"),
	SUM(SCAN_INDIRECT, "indirect"),
	SUM(SCAN_POSSIBLE, "possible"),
	SUM(SCAN_REACHABLE, "reachable"),
	SUM(SCAN_UNSURE, "unsure"),
	FIELD("through_blocks", leaks.through.blocks),
	FIELD("through_bytes", leaks.through.bytes),
	FIELD("suppressed_blocks", leaks.suppressed.blocks),
	FIELD("suppressed_bytes", leaks.suppressed.bytes),
};

/* A column, and the callers that have it. */
struct column_of {
	const struct column *column;
	const struct report_row *rows;
};

static s64 get_field(const void *ctx, size_t i)
{
	const struct column_of *c = ctx;

	return *(const s64 *)((const char *)&c->rows[i] + c->column->field);
}

static s64 html_process_get_number(const void *ctx, size_t i)
{
	u32 number = ((const u32 *)ctx)[i];

	return number == HTML_NONE ? -1 : (s64)number;
}

static int html_process_write_functions(struct json *j, struct html_tables *t, const struct report_process *p,
					const struct callers *c)
{
	auto_free u32 *names = calloc(2 * c->nr + 1, sizeof(*names));
	int err = names ? 0 : -ENOMEM;

	for (size_t i = 0; i < c->nr && !err; i++) {
		const struct alloc_fn *fn = alloc_fn(heap_functions(p->heap), c->rows[i].row.fn);

		err = html_text(t, fn->name, &names[i]);
		if (!err)
			err = html_text(t, alloc_family_name(fn->family), &names[c->nr + i]);
	}
	if (err)
		return err;
	html_numbers(j, "function", c->nr, html_process_get_number, names);
	html_numbers(j, "family", c->nr, html_process_get_number, names + c->nr);
	return 0;
}

static int html_process_write_callers(struct json *j, struct html_tables *t, const struct report_process *p,
				      const struct callers *c)
{
	int err;

	json_object_begin(j, "callers");
	json_u64(j, "nr", c->nr);
	html_numbers(j, "node", c->nr, html_process_get_number, c->nodes);
	html_numbers(j, "truncated", c->nr, html_process_get_number, c->truncated);
	html_numbers(j, "place", c->nr, html_process_get_number, c->places);
	err = html_process_write_functions(j, t, p, c);
	for (size_t i = 0; i < ARRAY_SIZE(columns); i++) {
		const struct column_of of = { &columns[i], c->rows };

		/* Without an earlier report, this is live_bytes again. */
		if (p->reported || columns[i].field != offsetof(struct report_row, grown))
			html_numbers(j, columns[i].name, c->nr, get_field, &of);
	}
	json_object_end(j);
	return err;
}

static int html_process_write_whys(struct json *j, const struct report *r, const struct report_process *p,
				   const struct callers *c)
{
	int err = 0;

	json_array_begin(j, "whys");
	for (size_t i = 0; i < c->nr && !err; i++) {
		if (!c->rows[i].why)
			continue;
		json_object_begin(j, NULL);
		json_u64(j, "caller", i);
		err = report_why_json(j, "why", r, p, &c->ids, c->rows[i].why);
		json_object_end(j);
	}
	json_array_end(j);
	return err;
}

/* An error or a chain names the stack of @row by its id: write its node, and the number of the frame that names it. */
static int write_id(struct json *j, struct html_tables *t, const struct report *r,
		    const struct report_process *p, const struct caller_ids *ids, u32 row)
{
	struct report_row of = { .row = heap_row_get(p->heap, row) };
	struct own_code place = { .symbol = NULL };
	const char *truncated;
	u32 node;
	int err;

	if (row == MISUSE_NO_ROW || of.row.stack < STACK_FIRST_ID)
		return 0;
	err = html_stack(t, r, p, &of, &node, &truncated);
	if (!err)
		err = own_code_find(r, p, of.row.stack, &place);
	if (err || node == HTML_NONE)
		return err;
	json_array_begin(j, NULL);
	report_json_id(j, NULL, ids, row);
	json_u64(j, NULL, node);
	json_u64(j, NULL, place.number);
	json_array_end(j);
	return 0;
}

static int write_why_ids(struct json *j, struct html_tables *t, const struct report *r,
			 const struct report_process *p, const struct caller_ids *ids,
			 const struct leak_why *why)
{
	int err = 0;

	for (size_t i = 0; why && i < why->nr_steps && !err; i++)
		if (why->steps[i].row != WHY_NO_ROW)
			err = write_id(j, t, r, p, ids, why->steps[i].row);
	return err;
}

/* The stacks that errors and chains of pointers name. Some ids come more than once. */
static int write_ids(struct json *j, struct html_tables *t, const struct report *r,
		     const struct report_process *p, const struct caller_ids *ids)
{
	size_t nr;
	const struct misuse *list = heap_misuses(p->heap, &nr);
	int err = p->leaks ? write_why_ids(j, t, r, p, ids, p->leaks->asked) : 0;

	for (size_t i = 0; p->leaks && i < p->leaks->nr_whys && !err; i++)
		err = write_why_ids(j, t, r, p, ids, &p->leaks->whys[i]);
	for (const struct misuse *m = list; m < list + nr && !err; m++) {
		err = write_id(j, t, r, p, ids, m->alloc_row);
		if (!err)
			err = write_id(j, t, r, p, ids, m->free_row);
		if (!err)
			err = write_id(j, t, r, p, ids, m->earlier_row);
	}
	return err;
}

enum { NR_SIZES = 65, NR_AGES = 10 };

/* Live blocks by size and by age. */
struct histogram {
	const struct report *report;
	struct scan_sum sizes[NR_SIZES]; /* [i]: from 2^(i-1) to 2^i - 1 bytes */
	struct scan_sum ages[NR_AGES];
};

/* Where each class of ages begins. */
static const u64 age_starts_ns[NR_AGES] = {
	0,	     1000000,	  10000000,	100000000,     1000000000,
	10000000000, 60000000000, 600000000000, 3600000000000, 86400000000000
};

static void html_process_add_block(struct scan_sum *sum, u64 size)
{
	sum->blocks++;
	sum->bytes += size;
}

static int html_process_visit_block(void *ctx, const struct heap_block *b)
{
	struct histogram *h = ctx;
	u64 age_ns = h->report->time_ns > b->time_ns ? h->report->time_ns - b->time_ns : 0;
	size_t age = NR_AGES - 1;

	if (!report_has_block(h->report, b))
		return 0;
	while (age && age_ns < age_starts_ns[age])
		age--;
	html_process_add_block(&h->ages[age], b->size);
	html_process_add_block(&h->sizes[b->size ? 64 - __builtin_clzll(b->size) : 0], b->size);
	return 0;
}

/* Write [start, blocks, bytes] of each class that has blocks. */
static void write_class(struct json *j, u64 start, const struct scan_sum *sum)
{
	if (!sum->blocks)
		return;
	json_array_begin(j, NULL);
	json_u64(j, NULL, start);
	json_u64(j, NULL, sum->blocks);
	json_u64(j, NULL, sum->bytes);
	json_array_end(j);
}

static void write_histograms(struct json *j, const struct report *r, const struct report_process *p)
{
	struct histogram h = { .report = r };

	heap_for_each_block(p->heap, html_process_visit_block, &h);
	json_array_begin(j, "sizes");
	for (size_t i = 0; i < NR_SIZES; i++)
		write_class(j, i ? 1ULL << (i - 1) : 0, &h.sizes[i]);
	json_array_end(j);
	json_array_begin(j, "ages");
	for (size_t i = 0; i < NR_AGES; i++)
		write_class(j, age_starts_ns[i], &h.ages[i]);
	json_array_end(j);
}

/* Growth, if the text tells of it. */
static void write_rose(struct json *j, const struct report_process *p)
{
	struct trend_growth g;
	char text[sizeof(REPORT_ROSE) + 2 * sizeof(struct human)];

	if (!report_rose(p, &g))
		return;
	snprintf(text, sizeof(text), REPORT_ROSE, estimate_bytes(p->heap, g.before).text,
		 estimate_bytes(p->heap, g.after).text);
	json_string(j, "rose", text);
}

int html_process(struct json *j, struct html_tables *t, const struct report *r,
		 const struct report_process *p)
{
	struct callers c = { .rows = NULL };
	int err = html_process_callers_init(&c, t, r, p);

	json_object_begin(j, NULL);
	if (!err)
		err = report_json_process(j, r, p, &c.ids);
	if (!err)
		err = report_json_threads(j, p);
	write_rose(j, p);
	if (!err)
		err = html_process_write_callers(j, t, p, &c);
	if (!err)
		err = html_process_write_whys(j, r, p, &c);
	json_array_begin(j, "stacks");
	if (!err)
		err = write_ids(j, t, r, p, &c.ids);
	json_array_end(j);
	write_histograms(j, r, p);
	if (!err)
		err = html_slices(j, p, c.rows, c.nr);
	json_object_end(j);
	html_process_callers_fini(&c);
	return err;
}

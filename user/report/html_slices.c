/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes what callers did in slices of time into the data of the HTML report, in bounded space. */
#include "user/report/html_slices.h"

#include <errno.h>
#include <stdlib.h>

#include "user/heap/slices.h"
#include "user/lib/array.h"
#include "user/lib/cleanup.h"
#include "user/report/html_tables.h"
#include "user/report/report.h"

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

int html_slices(struct json *j, const struct report_process *p, const struct report_row *rows, size_t nr)
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

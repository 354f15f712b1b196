/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads reports for metrics. */
#include "user/metrics/metrics_report.h"

#include <stdio.h>
#include <string.h>

#include "user/lib/cleanup.h"
#include "user/metrics/metrics_table.h"
#include "user/report/report.h"
#include "user/report/report_parts.h"
#include "user/report/report_rows.h"
#include "user/scan/leaks.h"

static int take_caller(struct metrics_table *t, u32 number, const struct report *r,
		       const struct report_process *p, const struct report_row *row)
{
	char where[METRICS_WHERE];
	struct metrics_caller c = { .process = number,
				    .where = where,
				    .allocs = row->row.allocs,
				    .alloc_bytes = row->row.alloc_bytes,
				    .live_blocks = row->row.live_blocks,
				    .live_bytes = row->row.live_bytes,
				    .grown = row->grown,
				    .has_verdict = p->leaks && p->leaks->has_verdict,
				    .leaks = row->leaks.sums };
	int err = report_own_callers(r, p, row->id, where, sizeof(where));

	snprintf(c.function, sizeof(c.function), "%s", alloc_fn(heap_functions(p->heap), row->row.fn)->name);
	return err ? err : metrics_add_caller(t, &c);
}

static int take_callers(struct metrics_table *t, u32 number, const struct report *r,
			const struct report_process *p, u32 top)
{
	auto_free struct report_row *rows = NULL;
	struct report sorted = *r;
	size_t nr;
	int err;

	sorted.options = (struct report_options){ .sort = report_key_find("live-bytes") };
	err = report_rows(&sorted, p, &rows, &nr, NULL);
	for (size_t i = 0; !err && i < nr && (!top || i < top); i++)
		err = take_caller(t, number, r, p, &rows[i]);
	return err;
}

static int metrics_report_take_process(struct metrics_table *t, const struct report *r,
				       const struct report_process *p, u32 top)
{
	struct metrics_process *m = metrics_process(t, p->target->pid, p->target->comm);

	if (!m)
		return 0;
	m->is_traced = true;
	if (p->unwatched)
		return 0;
	m->has_heap = true;
	m->totals = heap_totals(p->heap);
	m->lost = report_losses(p);
	m->is_window = r->window.number != 0;
	m->scale = (double)report_window_permille(&r->window) / 1000;
	if (p->leaks && p->leaks->has_verdict) {
		m->has_verdict = true;
		m->leaks = p->leaks->result.sums;
		m->verdict_s = t->time_s;
		m->is_verdict_of_window = m->is_window;
		m->verdict_scale = m->scale;
	}
	return take_callers(t, (u32)(m - t->processes), r, p, top);
}

int metrics_take_report(struct metrics_table *t, const struct report *r, u32 top)
{
	int err = 0;

	/* A program that was replaced by exec() has the PID of its successor. */
	for (size_t i = 0; i < r->nr_processes && !err; i++)
		if (!r->processes[i].is_replaced && !r->processes[i].target->has_exited)
			err = metrics_report_take_process(t, r, &r->processes[i], top);
	return err;
}

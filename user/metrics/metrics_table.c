/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Collects the rows of an exposition. No two rows have equal labels, because readers refuse that. */
#include "user/metrics/metrics_table.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "user/lib/array.h"
#include "user/lib/cleanup.h"
#include "user/report/report.h"
#include "user/report/report_parts.h"
#include "user/report/report_rows.h"
#include "user/scan/leaks.h"

/* Reads reports for metrics. */

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

struct metrics_process *metrics_process(struct metrics_table *t, pid_t pid, const char *comm)
{
	struct metrics_process *p;

	for (size_t i = 0; i < t->nr_processes; i++)
		if (t->processes[i].pid == pid)
			return &t->processes[i];
	if (t->nr_processes >= METRICS_MAX_PROCESSES ||
	    array_reserve(t->processes, t->max_processes, t->nr_processes + 1)) {
		t->nr_left_out++;
		return NULL;
	}
	p = &t->processes[t->nr_processes++];
	*p = (struct metrics_process){ .pid = pid };
	snprintf(p->comm, sizeof(p->comm), "%s", comm);
	return p;
}

static void add_sums(struct scan_sums *to, const struct scan_sums *more)
{
	for (size_t i = 0; i < NR_SCAN_VERDICTS; i++) {
		to->of[i].blocks += more->of[i].blocks;
		to->of[i].bytes += more->of[i].bytes;
	}
}

int metrics_add_caller(struct metrics_table *t, const struct metrics_caller *c)
{
	/* Callers of one process come one after the other. */
	for (size_t i = t->nr_callers; i-- > 0 && t->callers[i].process == c->process;) {
		struct metrics_caller *old = &t->callers[i];

		if (strcmp(old->where, c->where) != 0 || strcmp(old->function, c->function) != 0)
			continue;
		old->allocs += c->allocs;
		old->alloc_bytes += c->alloc_bytes;
		old->live_blocks += c->live_blocks;
		old->live_bytes += c->live_bytes;
		old->grown += c->grown;
		add_sums(&old->leaks, &c->leaks);
		return 0;
	}
	if (t->nr_callers >= METRICS_MAX_CALLERS) {
		t->nr_left_out++;
		return 0;
	}
	if (array_reserve(t->callers, t->max_callers, t->nr_callers + 1))
		return -ENOMEM;
	t->callers[t->nr_callers] = *c;
	t->callers[t->nr_callers].where = strdup(c->where);
	if (!t->callers[t->nr_callers].where)
		return -ENOMEM;
	t->nr_callers++;
	return 0;
}

int metrics_add_to_container(struct metrics_table *t, const struct metrics_process *p)
{
	struct metrics_container *c = NULL;

	for (size_t i = 0; i < t->nr_containers && !c; i++)
		if (!strcmp(t->containers[i].container, p->container) &&
		    !strcmp(t->containers[i].pod, p->pod))
			c = &t->containers[i];
	if (!c && t->nr_containers >= METRICS_MAX_CONTAINERS) {
		t->nr_left_out++;
		return 0;
	}
	if (!c) {
		if (array_reserve(t->containers, t->max_containers, t->nr_containers + 1))
			return -ENOMEM;
		c = &t->containers[t->nr_containers++];
		*c = (struct metrics_container){ 0 };
		memcpy(c->container, p->container, sizeof(c->container));
		memcpy(c->pod, p->pod, sizeof(c->pod));
	}
	c->nr++;
	c->resident += p->resident;
	c->anonymous += p->anonymous;
	c->growth += p->growth;
	c->live_bytes += p->totals.live_bytes;
	c->lost_bytes += p->leaks.of[SCAN_DEFINITE].bytes + p->leaks.of[SCAN_INDIRECT].bytes;
	return 0;
}

void metrics_table_fini(struct metrics_table *t)
{
	for (size_t i = 0; i < t->nr_callers; i++)
		free(t->callers[i].where);
	free(t->callers);
	free(t->processes);
	free(t->containers);
}

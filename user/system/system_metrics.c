/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From the state of heaptap system to metrics and profiles. */
#include "user/system/system_metrics.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "user/lib/cleanup.h"
#include "user/lib/clock.h"
#include "user/metrics/metrics.h"
#include "user/metrics/metrics_table.h"
#include "user/metrics/push.h"
#include "user/report/html_page.h"
#include "user/report/pprof.h"
#include "user/report/report.h"
#include "user/session/session.h"
#include "user/system/answer.h"
#include "user/system/rows.h"
#include "user/system/system.h"

/* One call. */
struct taking {
	struct system_state *state;
	struct metrics_table *table;
	struct pprof *profile;
	FILE *page;
	bool is_data; /* the data of the page alone */
	size_t nr_processes;
};

/* ---- the table ---- */

/* The name of its container, else its id; "" = none. */
static const char *container_name(const struct container *c)
{
	return c->name[0] ? c->name : c->id;
}

static void fill_watched(struct metrics_process *m, const struct watched *p)
{
	u64 left_ns = p->state == WATCHED_GROWS ? limit_time_ns(&p->limit, p->line.bytes_per_s) : 0;

	snprintf(m->container, sizeof(m->container), "%s", container_name(&p->container));
	snprintf(m->pod, sizeof(m->pod), "%s", p->container.pod);
	m->is_watched = true;
	m->resident = p->resident;
	m->anonymous = p->anonymous;
	m->swapped = p->swapped;
	m->grows = p->state == WATCHED_GROWS;
	m->growth = p->line.bytes_per_s;
	m->growth_error = p->line.error_per_s;
	m->has_limit = left_ns != 0;
	m->limit_s = (double)left_ns / 1e9;
}

/* The result of tracing, now or before. */
static void fill_answer(struct metrics_process *m, const struct zoom_answer *a)
{
	if (!a)
		return;
	m->is_traced |= !a->end_ns;
	m->has_cost = !a->end_ns;
	m->cost = a->permyriad / 10000.0;
	if (!a->verdict_ns)
		return;
	m->has_verdict = true;
	m->leaks = a->sums;
	m->is_verdict_of_window = a->window.number != 0;
	m->verdict_scale = (double)report_window_permille(&a->window) / 1000;
	m->verdict_s = (double)(clock_ns(CLOCK_REALTIME) - (clock_now_ns() - a->verdict_ns)) / 1e9;
}

static int system_metrics_take_report(void *ctx, const struct report *r)
{
	struct taking *k = ctx;

	return metrics_take_report(k->table, r, k->state->options->top);
}

/* The heap of each process of the table that is traced. */
static int take_heaps(struct taking *k)
{
	const struct zooms *z = &k->state->zooms;
	struct session *all = k->state->everything.session;
	size_t nr = k->table->nr_processes;
	int err = 0;

	for (u32 i = 0; i < z->nr && !err; i++)
		err = session_show(z->list[i].session, z->list[i].pid, system_metrics_take_report, k);
	for (size_t i = 0; i < nr && all && !err; i++)
		err = session_show(all, k->table->processes[i].pid, system_metrics_take_report, k);
	return err;
}

/* Sums over all processes of a container, also those that have no row. */
static int add_containers(struct taking *k)
{
	const struct watch *w = &k->state->watch;
	int err = 0;

	for (size_t i = 0; i < w->nr && !err; i++) {
		struct metrics_process sum = { 0 };

		if (!container_name(&w->list[i].container)[0] && !w->list[i].container.pod[0])
			continue;
		fill_watched(&sum, &w->list[i]);
		for (size_t n = 0; n < k->table->nr_processes; n++) {
			if (k->table->processes[n].pid != w->list[i].pid)
				continue;
			sum.totals = k->table->processes[n].totals;
			sum.leaks = k->table->processes[n].leaks;
		}
		err = metrics_add_to_container(k->table, &sum);
	}
	return err;
}

static void fill_state(struct metrics_table *t, const struct system_state *s)
{
	t->is_system = true;
	t->nr_watched = s->watch.nr;
	t->nr_evicted = s->watch.nr_evicted;
	t->nr_unseen = s->watch.nr_unseen;
	t->nr_traced = s->everything.session ? s->everything.nr_traced : s->zooms.nr;
	t->targets_cost = s->zooms.permyriad / 10000.0;
	for (size_t i = 0; i < s->watch.nr; i++)
		t->nr_growing += s->watch.list[i].state == WATCHED_GROWS;
}

static int system_metrics_fill_table(void *ctx, struct metrics_table *t)
{
	auto_free const struct watched **list = NULL;
	struct taking *k = ctx;
	const struct watch *w = &k->state->watch;
	u32 top = k->state->options->top;
	int err = watch_rank(w, &list);

	if (err)
		return err;
	k->table = t;
	fill_state(t, k->state);
	for (size_t i = 0; i < w->nr; i++) {
		struct metrics_process *m;

		if (top && i >= top && !list[i]->is_held)
			continue;
		m = metrics_process(t, list[i]->pid, list[i]->comm);
		if (!m)
			continue;
		fill_watched(m, list[i]);
		fill_answer(m, zooms_answer(&k->state->zooms, list[i]->pid, list[i]->start_time));
	}
	err = take_heaps(k);
	return err ? err : add_containers(k);
}

/* ---- profiles ---- */

static bool system_metrics_is_wanted(const struct profile_key *key, const struct watched *p)
{
	if (!p)
		return false;
	if (key->pid)
		return p->pid == key->pid;
	return !key->container[0] || !strcmp(key->container, container_name(&p->container)) ||
	       (p->container.id[0] && !strcmp(key->container, p->container.id)) ||
	       !strcmp(key->container, p->container.pod);
}

static int system_metrics_take_profile(void *ctx, const struct report *r)
{
	struct taking *k = ctx;

	k->nr_processes += r->nr_processes;
	return r->nr_processes ? pprof_add(k->profile, r) : 0;
}

static int system_metrics_fill_profile(void *ctx, const struct profile_key *key, struct pprof *out,
				       const char **why)
{
	struct taking *k = ctx;
	const struct watch *w = &k->state->watch;
	const struct zooms *z = &k->state->zooms;
	struct session *all = k->state->everything.session;
	int err = 0;

	k->profile = out;
	for (u32 i = 0; i < z->nr && !err; i++)
		if (system_metrics_is_wanted(key, watch_find(w, z->list[i].pid)))
			err = session_show(z->list[i].session, 0, system_metrics_take_profile, k);
	if (all && !key->pid && !key->container[0])
		err = session_show(all, 0, system_metrics_take_profile, k);
	else if (all && key->pid)
		err = session_show(all, key->pid, system_metrics_take_profile, k);
	for (size_t i = 0; i < w->nr && all && key->container[0] && !err; i++)
		if (system_metrics_is_wanted(key, &w->list[i]))
			err = session_show(all, w->list[i].pid, system_metrics_take_profile, k);
	if (!err && !k->nr_processes) {
		*why = "no such process is traced";
		return -ESRCH;
	}
	return err;
}

/* ---- pages ---- */

static int system_metrics_take_page(void *ctx, const struct report *r)
{
	struct taking *k = ctx;

	k->nr_processes = r->nr_processes;
	return !r->nr_processes ? 0
	       : k->is_data	? report_html_data(k->page, r, 0)
				: report_html_live(k->page, r, 0);
}

/* The rows of all processes, or the report on one that is traced. */
static int system_metrics_write_page(void *ctx, const struct profile_key *key, FILE *out, const char **why)
{
	struct taking *k = ctx;
	const struct zooms *z = &k->state->zooms;
	struct session *all = k->state->everything.session;
	int err = 0;

	*why = NULL;
	k->page = out;
	k->is_data = key->kind == CHANNEL_PAGE_DATA;
	if (!key->pid)
		return rows_write_page(out, k->state, k->state->options->top, k->is_data);
	for (u32 i = 0; i < z->nr && !err; i++)
		if (z->list[i].pid == key->pid)
			err = session_show(z->list[i].session, key->pid, system_metrics_take_page, k);
	if (all && !err && !k->nr_processes)
		err = session_show(all, key->pid, system_metrics_take_page, k);
	if (err || k->nr_processes)
		return err;
	*why = "no such process is traced";
	return -ESRCH;
}

void system_metrics_round(struct metrics *m, struct push *p, struct system_state *s)
{
	struct taking k = { .state = s };
	const struct metrics_feed feed = { &k, system_metrics_fill_table, system_metrics_fill_profile,
					   system_metrics_write_page };

	metrics_round(m, &feed);
	push_round(p, &feed);
}

void system_metrics_end(struct push *p, struct system_state *s)
{
	struct taking k = { .state = s };
	const struct metrics_feed feed = { &k, system_metrics_fill_table, system_metrics_fill_profile, NULL };

	push_end(p, &feed);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes heap reports on traced processes. */
#include "user/system/dump.h"

#include <stdio.h>
#include <string.h>

#include "user/lib/human.h"
#include "user/lib/log.h"
#include "user/session/session.h"
#include "user/session/session_live.h"
#include "user/system/answer.h"
#include "user/system/rows.h"

static const u64 again_after_ns = 3600000000000ULL;

int dumps_init(struct dumps *d, const struct dump_options *options, bool has_stdout)
{
	*d = (struct dumps){ .options = options };
	if (!options->output->nr_names && !has_stdout)
		return 0;
	return outputs_new(&d->outs, options->output, stdout);
}

void dumps_fini(struct dumps *d)
{
	outputs_free(d->outs);
}

/* On process @pid, 0 = all of @s. */
static void dump_write_report(struct dumps *d, struct session *s, pid_t pid, bool wants_scan)
{
	int err;

	if (!d->outs)
		return;
	if (wants_scan)
		session_scan(s, NULL, false);
	err = session_show(s, pid, outputs_write_to, d->outs);
	/* The outputs have logged why. */
	if (err)
		d->has_failed = true;
}

void dumps_write_all(struct dumps *d, struct zooms *z)
{
	for (u32 i = 0; i < z->nr; i++)
		dump_write_report(d, z->list[i].session, 0, d->options->wants_scan);
	if (d->all && session_running(d->all))
		dump_write_report(d, d->all, 0, d->options->wants_scan);
}

void dumps_write_last(void *ctx, struct session *s)
{
	struct dumps *d = ctx;

	if (d->options->output->nr_names)
		dump_write_report(d, s, 0, false);
}

/* ---- rules ---- */

static bool dump_exceeds(const struct dump_options *o, const struct watched *p)
{
	if (o->max_bytes && watched_needs(p) >= o->max_bytes)
		return true;
	return o->max_growth && p->state == WATCHED_GROWS &&
	       p->line.bytes_per_s * 3600 * 1000 >= (double)watched_needs(p) * o->max_growth;
}

/* A process meets a rule for the first time. */
static void say_over(const struct watched *p)
{
	char rate[80];

	row_rate(p->line.bytes_per_s, rate, sizeof(rate));
	info("system: %s (pid %d): --threshold: needs %s, grows by %s", p->comm, (int)p->pid,
	     human_bytes(watched_needs(p)).text, rate);
}

static const struct zoom *find_zoom(const struct zooms *z, const struct watched *p)
{
	for (u32 i = 0; i < z->nr; i++)
		if (z->list[i].pid == p->pid && z->list[i].start_time == p->start_time)
			return &z->list[i];
	return NULL;
}

/* A report without a verdict would not say what the memory is for: wait for the first one. */
static void dump_check(struct dumps *d, struct watch *w, const struct zooms *z, struct watched *p)
{
	const struct zoom_answer *a = zooms_answer(z, p->pid, p->start_time);
	const struct zoom *zoom = find_zoom(z, p);

	if (!p->is_over)
		say_over(p);
	p->is_over = true;
	if (w->now_ns < p->dump_again_ns)
		return;
	p->is_asked = !d->all || d->awaits_verdicts;
	/* With all others it is traced soon, or never. */
	if (d->all && (!p->is_tried || (d->awaits_verdicts && a && !a->end_ns && !a->nr_verdicts)))
		return;
	if (d->all && session_knows(d->all, p->pid))
		dump_write_report(d, d->all, p->pid, d->options->wants_scan);
	else if (d->all)
		warn("system: %s (pid %d): --threshold: no report: it is not traced", p->comm, (int)p->pid);
	else if (zoom && z->answers[zoom->answer].nr_verdicts)
		dump_write_report(d, zoom->session, 0, d->options->wants_scan);
	else
		return;
	p->dump_again_ns = w->now_ns + again_after_ns;
	p->is_asked = false;
}

void dumps_look(struct dumps *d, struct watch *w, struct zooms *z)
{
	if (!d->options->max_bytes && !d->options->max_growth)
		return;
	for (size_t i = 0; i < w->nr; i++)
		if (dump_exceeds(d->options, &w->list[i]))
			dump_check(d, w, z, &w->list[i]);
		else
			w->list[i].is_asked = false;
}

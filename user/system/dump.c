/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes heap reports on traced processes. */
#include "user/system/dump.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "user/lib/human.h"
#include "user/lib/log.h"
#include "user/session/session.h"
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

static void write_report(struct dumps *d, struct session *s, bool wants_scan)
{
	int err;

	if (!d->outs)
		return;
	if (wants_scan)
		session_scan(s, NULL, false);
	err = session_show(s, 0, outputs_write_to, d->outs);
	/* The outputs have logged why. */
	if (err)
		d->has_failed = true;
}

void dumps_write_all(struct dumps *d, struct zooms *z)
{
	for (u32 i = 0; i < z->nr; i++)
		write_report(d, z->list[i].session, d->options->wants_scan);
}

void dumps_write_last(void *ctx, struct session *s)
{
	struct dumps *d = ctx;

	if (d->options->output->nr_names)
		write_report(d, s, false);
}

/* ---- rules ---- */

static bool exceeds(const struct dump_options *o, const struct watched *p)
{
	if (o->max_bytes && watched_needs(p) >= o->max_bytes)
		return true;
	return o->max_growth && p->state == WATCHED_GROWS &&
	       p->line.bytes_per_s * 3600 * 1000 >= (double)watched_needs(p) * o->max_growth;
}

static struct dump_over *find_over(struct dumps *d, const struct watched *p)
{
	for (u32 i = 0; i < DUMP_MAX_OVER && i < d->nr_over; i++)
		if (d->over[i].pid == p->pid && d->over[i].start_time == p->start_time)
			return &d->over[i];
	return NULL;
}

/* A process meets a rule for the first time: say so. */
static struct dump_over *new_over(struct dumps *d, const struct watched *p)
{
	struct dump_over *over = &d->over[d->nr_over++ % DUMP_MAX_OVER];
	char rate[80];

	*over = (struct dump_over){ .pid = p->pid, .start_time = p->start_time };
	row_rate(p->line.bytes_per_s, rate, sizeof(rate));
	info("system: %s (pid %d): --threshold: needs %s, grows by %s", p->comm, (int)p->pid,
	     human_bytes(watched_needs(p)).text, rate);
	return over;
}

static const struct zoom *find_zoom(const struct zooms *z, const struct watched *p)
{
	for (u32 i = 0; i < z->nr; i++)
		if (z->list[i].pid == p->pid && z->list[i].start_time == p->start_time)
			return &z->list[i];
	return NULL;
}

/* A report without a verdict would not say what the memory is for: wait for the first one. */
static void check(struct dumps *d, struct watch *w, const struct zooms *z, const struct watched *p)
{
	struct dump_over *over = find_over(d, p);
	const struct zoom *zoom = find_zoom(z, p);

	if (!over)
		over = new_over(d, p);
	if (w->now_ns < over->again_ns)
		return;
	watch_ask(w, p->pid, true);
	if (!zoom || !z->answers[zoom->answer].nr_verdicts)
		return;
	write_report(d, zoom->session, d->options->wants_scan);
	over->again_ns = w->now_ns + again_after_ns;
	watch_ask(w, p->pid, false);
}

void dumps_look(struct dumps *d, struct watch *w, struct zooms *z)
{
	if (!d->options->max_bytes && !d->options->max_growth)
		return;
	for (size_t i = 0; i < w->nr; i++)
		if (exceeds(d->options, &w->list[i]))
			check(d, w, z, &w->list[i]);
		else if (w->list[i].is_asked)
			watch_ask(w, w->list[i].pid, false);
}

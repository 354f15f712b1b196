/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The outgoing half of a session: leak verdicts and reports on the books as they are. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "user/heap.h"
#include "user/lib/cleanup.h"
#include "user/lib/log.h"
#include "user/output.h"
#include "user/report.h"
#include "user/session_private.h"
#include "user/source_replay.h"
#include "user/symbolize.h"

/* A process that ends is in no hurry. */
static const u64 EXIT_PAUSE_NS = 10ULL * 60 * 1000000000;

/* Enter what is there; leaks_options. */
static int drain(void *ctx, struct scan *scan, bool is_standing)
{
	struct session *s = ctx;
	struct process *p = s->scanned;
	u64 nr_taints = p->nr_taints;
	int err;

	s->scan = scan;
	err = session_poll(s);
	if (err && err != -ENODATA)
		return err;
	if (p->is_over)
		return -ESRCH;
	/* So the report's books are those of this moment. */
	if (is_standing && s->is_last_scan)
		s->ops->pause(s->source, p->target->pid);
	return p->nr_taints != nr_taints ? -ENODATA : s->scan_err;
}

static int put_aside(void *ctx, const struct event_header *rec, size_t len)
{
	struct session *s = ctx;

	backlog_add(&s->backlog, rec, len);
	return 0;
}

static void read_on(void *ctx)
{
	struct session *s = ctx;
	const struct sink sink = { s, put_aside };

	if (!backlog_is_full(&s->backlog) && s->ops->poll(s->source, &sink) < 0)
		debug("%s: no more events", s->ops->name);
}

/* The ring would overflow if nobody read it as long as this takes. */
static int aside(void *ctx, int (*work)(void *arg), void *arg)
{
	struct session *s = ctx;

	if (s->stop_ns || s->ops == &source_replay)
		return work(arg);
	return backlog_work(work, arg, read_on, s);
}

static int stop_target(void *ctx, u64 max_ns)
{
	const struct session *s = ctx;

	return s->stopper->stop(s->stopper->ctx, max_ns);
}

static void release_target(void *ctx)
{
	const struct session *s = ctx;

	s->stopper->release(s->stopper->ctx);
}

/* A verdict on @p for the next report. */
static void scan_process(struct session *s, struct process *p, bool is_traced)
{
	struct leaks_options lo = {
		.pid = p->target->pid,
		.heap = p->heap,
		.max_pause_ns = s->options->max_pause_ns,
		.is_traced = is_traced,
		.pointer_mask = s->options->pointer_mask,
		.want_unaligned = s->options->unaligned,
		.nr_whys = s->options->nr_whys,
		.why_addr = s->options->why_addr,
		.ctx = s,
		.stop = s->stopper ? stop_target : NULL,
		.release = s->stopper ? release_target : NULL,
		.drain = drain,
		.aside = aside,
	};

	if (!lo.max_pause_ns)
		lo.max_pause_ns =
			is_traced && !s->stopper ? EXIT_PAUSE_NS : SNAPSHOT_MAX_PAUSE_MS * 1000000ULL;
	/* What is entered only after the scan has begun is too young for a verdict. */
	if (session_poll(s))
		debug("scan: no more events");
	if (p->is_over)
		return;
	session_read_losses(s, p);
	lo.is_partial = !p->target->is_started || p->losses.allocs || p->losses.other || heap_lost(p->heap);
	leaks_free(p->leaks);
	p->leaks = NULL;
	s->scanned = p;
	s->scan_err = 0;
	if (leaks_find(&p->leaks, &lo))
		warn("scan: PID %d: out of memory", p->target->pid);
	s->scanned = NULL;
	s->scan = NULL;
}

void session_scan(struct session *s, const struct session_stopper *stopper, bool is_last)
{
	s->is_last_scan = is_last;
	s->stopper = stopper;
	for (size_t i = 0; i < s->nr_processes; i++)
		if (!s->processes[i]->is_over && !s->processes[i]->is_exiting)
			scan_process(s, s->processes[i], stopper != NULL);
}

void session_scan_exiting(struct session *s, pid_t pid)
{
	struct process *p = session_find(s, pid);

	s->is_last_scan = false;
	s->stopper = NULL;
	if (!p || p->is_exiting)
		return;
	scan_process(s, p, true);
	p->is_exiting = true;
}

/* The allocators of @t as reports show them; the caller owns the list. */
static struct report_allocator *list_allocators(const struct target *t)
{
	struct report_allocator *list = calloc(t->nr_allocators + 1, sizeof(*list));

	for (size_t i = 0; list && i < t->nr_allocators; i++)
		list[i] = (struct report_allocator){ t->allocators[i].module->path, t->allocators[i].kind };
	return list;
}

static int make_symbolizer(struct session *s)
{
	struct symbolizer_options so = { s->options->sysroot, s->options->debug_path };

	return s->symbolizer ? 0 : symbolizer_new(&s->symbolizer, s->modules, &so);
}

/* What --fail-on looks at. */
static void count_findings(struct session *s, const struct process *p)
{
	if (!p->leaks || !p->leaks->has_verdict) {
		/* A program that makes way for another one leaves nothing behind. */
		s->nr_unjudged += !p->is_replaced;
		return;
	}
	for (size_t i = SCAN_DEFINITE; i <= SCAN_INDIRECT; i++) {
		s->lost.blocks += p->leaks->result.sums.of[i].blocks;
		s->lost.bytes += p->leaks->result.sums.of[i].bytes;
	}
}

/* Why @p has no verdict, NULL if it has one or none was asked for. */
static const char *note_of(const struct session *s, const struct process *p)
{
	if (p->leaks)
		return p->leaks->has_verdict ? NULL : p->leaks->why;
	if (!p->is_over || s->options->scan == SCAN_NEVER || s->ops == &source_replay)
		return NULL;
	return p->is_replaced ? "no leak verdict: it became another program"
			      : "no leak verdict: it had ended";
}

/* One process as reports show it. */
static int describe(struct session *s, struct process *p, struct report_process *out)
{
	const struct leaks_names names = { p->heap, s->stacks, s->modules, s->symbolizer };
	struct report_allocator *allocators = list_allocators(p->target);
	int err = 0;

	session_read_losses(s, p);
	*out = (struct report_process){ .target = p->target,
					.heap = p->heap,
					.stacks = s->stacks,
					.losses = &p->losses,
					.allocators = allocators,
					.nr_allocators = allocators ? p->target->nr_allocators : 0,
					.leaks = p->leaks };
	if (p->leaks && p->leaks->has_verdict && s->options->suppress)
		err = leaks_suppress(p->leaks, s->options->suppress, &names);
	p->note = note_of(s, p);
	if (p->note) {
		out->notes = &p->note;
		out->nr_notes = 1;
		out->leaks = NULL;
	}
	count_findings(s, p);
	return err;
}

/* A verdict is for one report; the last one of a process that ends is kept. */
static void drop_leaks(struct session *s)
{
	for (size_t i = 0; i < s->nr_processes; i++) {
		struct process *p = s->processes[i];

		if (p->is_exiting)
			continue;
		leaks_free(p->leaks);
		p->leaks = NULL;
	}
}

struct writing {
	struct session *session;
	struct report report;
	struct report_process *list;
};

static int write_report(void *arg)
{
	struct writing *w = arg;
	struct session *s = w->session;
	int err = make_symbolizer(s);

	for (size_t i = 0; !err && i < s->nr_processes; i++)
		err = describe(s, s->processes[i], &w->list[w->report.nr_processes++]);
	w->report.symbolizer = s->symbolizer;
	return err ? err : outputs_write(s->outs, &w->report);
}

int session_report(struct session *s)
{
	u64 now = s->stop_ns ? s->stop_ns : session_now_ns();
	struct writing w = {
		.session = s,
		.list = calloc(s->nr_processes + 1, sizeof(*w.list)),
		.report = { .backend = s->ops->name,
			    .time_ns = now,
			    .duration_ns = s->start_ns ? now - s->start_ns : 0,
			    .modules = s->modules },
	};
	int err;

	if (!w.list)
		return -ENOMEM;
	w.report.processes = w.list;
	s->lost = (struct scan_sum){ 0 };
	s->nr_unjudged = 0;
	err = aside(s, write_report, &w);
	for (size_t i = 0; i < w.report.nr_processes; i++)
		free((void *)w.list[i].allocators);
	free(w.list);
	drop_leaks(s);
	return err;
}

int session_findings(const struct session *s)
{
	if (s->lost.blocks && s->lost.bytes >= s->options->fail_bytes)
		return 1;
	if (!s->nr_unjudged)
		return 0;
	error("%s: --fail-on: no leak verdict on %zu process%s", s->options->command->name, s->nr_unjudged,
	      s->nr_unjudged == 1 ? "" : "es");
	return -ENODATA;
}

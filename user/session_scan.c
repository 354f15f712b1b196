/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Leak verdicts of a session: which process, how it is stopped, events of the moment into its books. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "user/heap.h"
#include "user/lib/log.h"
#include "user/scan_remote.h"
#include "user/session_private.h"

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

int session_aside(void *ctx, int (*work)(void *arg), void *arg)
{
	struct session *s = ctx;

	if (s->stop_ns || s->is_replayed)
		return work(arg);
	return backlog_work(work, arg, read_on, s);
}

static int stop_target(void *ctx, u64 max_ns)
{
	const struct session *s = ctx;

	return s->stopper->stop(s->stopper->ctx, s->scanned->target->pid, max_ns);
}

static void release_target(void *ctx)
{
	const struct session *s = ctx;

	s->stopper->release(s->stopper->ctx, s->scanned->target->pid);
}

/* The verdicts are found where the process is; leaks_options. */
static int elsewhere(void *ctx, struct scan *scan, struct leaks *l)
{
	struct session *s = ctx;
	const struct sink aside = { s, put_aside };
	struct source_scan *o = s->over_there;
	int err;

	o->aside = &aside;
	err = s->ops->told->scan_blocks(s->source, o, scan);
	if (!err)
		err = drain(s, scan, false);
	if (!err)
		err = scan_elsewhere(scan);
	if (!err)
		err = s->ops->told->scan_wait(s->source, o, scan);
	l->pause_ns = o->pause_ns;
	l->word_size = s->scanned->target->is_32bit ? 4 : 8;
	snprintf(l->why, sizeof(l->why), "%s", o->why);
	return err;
}

/* leaks_options. */
static int why_elsewhere(void *ctx, taddr_t addr, struct scan_chain **out)
{
	struct session *s = ctx;
	const struct sink aside = { s, put_aside };
	struct source_scan *o = s->over_there;

	o->aside = &aside;
	return s->ops->told->scan_why(s->source, o, addr, out);
}

/* Up to the moment that its blocks are sent of. */
static int begin_elsewhere(struct session *s, struct process *p, struct leaks_options *lo,
			   struct source_scan *o)
{
	int err;

	if (!s->ops->told->scan_begin)
		return -EOPNOTSUPP;
	lo->elsewhere = elsewhere;
	*o = (struct source_scan){ .pid = lo->pid,
				   .sink = &s->sink,
				   .heap = lo->heap,
				   .max_pause_ns = s->options->max_pause_ns,
				   .pointer_mask = lo->pointer_mask,
				   .want_unaligned = lo->want_unaligned,
				   .is_partial = lo->is_partial,
				   .is_last = s->is_last_scan,
				   .wants_whys = s->ops->told->scan_why && (lo->nr_whys || lo->why_addr) };
	lo->why = o->wants_whys ? why_elsewhere : NULL;
	s->over_there = o;
	err = s->ops->told->scan_begin(s->source, o);
	if (err)
		return leaks_none(&p->leaks, o->why) ? -ENOMEM : err;
	return p->is_over ? -ESRCH : 0;
}

static int hold_target(void *ctx, u64 max_ns)
{
	const struct session *s = ctx;

	return s->ops->tracer->hold(s->source, s->scanned->target->pid, max_ns);
}

static void unhold_target(void *ctx)
{
	const struct session *s = ctx;

	s->ops->tracer->release(s->source, s->scanned->target->pid);
}

static int read_regs(void *ctx, pid_t tid, struct arch_regs *regs)
{
	const struct session *s = ctx;

	return s->ops->tracer->read_regs(s->source, tid, regs);
}

/* Only the source can stop its targets. Those that end stand already. */
static void stop_by_source(struct leaks_options *lo, const struct snapshot_holder *holder)
{
	bool stands = lo->is_traced && !lo->stop;

	lo->holder = holder;
	lo->is_traced = true;
	lo->stop = stands ? NULL : hold_target;
	lo->release = stands ? NULL : unhold_target;
}

void session_scan_process(struct session *s, struct process *p, bool is_traced, struct leak_marks *marks)
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
		.before = p->reported,
		.nr_before = p->nr_reported,
		.kinds = s->options->leaks,
		.marks = marks,
		.ctx = s,
		.stop = s->stopper ? stop_target : NULL,
		.release = s->stopper ? release_target : NULL,
		.drain = drain,
		.aside = session_aside,
	};
	struct source_scan over_there;
	const struct snapshot_holder holder = { s, read_regs };

	if (!lo.max_pause_ns)
		lo.max_pause_ns =
			is_traced && !s->stopper ? EXIT_PAUSE_NS : SNAPSHOT_MAX_PAUSE_MS * 1000000ULL;
	if (s->ops->tracer)
		stop_by_source(&lo, &holder);
	/* What is entered only after the scan has begun is too young for a verdict. */
	if (session_poll(s))
		debug("scan: no more events");
	if (p->is_over)
		return;
	session_read_losses(s, p);
	lo.has_losses = p->losses.allocs || p->losses.other || heap_lost(p->heap);
	lo.is_partial = !p->target->is_started || lo.has_losses || p->tuned.has_unseen;
	leaks_free(p->leaks);
	p->leaks = NULL;
	if (s->ops->told && begin_elsewhere(s, p, &lo, &over_there))
		return;
	s->scanned = p;
	s->scan_err = 0;
	if (leaks_find(&p->leaks, &lo))
		warn("scan: PID %d: out of memory", p->target->pid);
	if (lo.why)
		s->ops->told->scan_over(s->source);
	s->scanned = NULL;
	s->scan = NULL;
}

static void record_scan(struct session *s, const struct process *p)
{
	if (p->leaks)
		recorder_scan(s->recorder, p->target->pid, p->leaks, p->heap, p->is_exiting);
}

void session_scan(struct session *s, const struct session_stopper *stopper, bool is_last)
{
	s->is_last_scan = is_last;
	s->stopper = stopper;
	for (size_t i = 0; i < s->nr_processes; i++)
		if (!s->processes[i]->is_over && !s->processes[i]->is_exiting) {
			s->processes[i]->marks.is_last = is_last;
			session_scan_process(s, s->processes[i], stopper != NULL, &s->processes[i]->marks);
			record_scan(s, s->processes[i]);
		}
}

void session_scan_exiting(struct session *s, pid_t pid)
{
	struct process *p = session_find(s, pid);

	s->is_last_scan = false;
	s->stopper = NULL;
	if (!p || p->is_exiting)
		return;
	p->is_exiting = p->marks.is_last = true;
	session_scan_process(s, p, true, &p->marks);
	record_scan(s, p);
}

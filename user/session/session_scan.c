/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Leak verdicts of a session: which process, how to stop it, and its events up to the moment of the scan. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "user/heap/heap_sample.h"
#include "user/lib/log.h"
#include "user/lib/progress.h"
#include "user/scan/kernel_words.h"
#include "user/scan/scan_remote.h"
#include "user/session/control.h"
#include "user/session/session_books.h"
#include "user/session/session_ending.h"
#include "user/session/session_private.h"
#include "user/session/session_residence.h"
#include "user/session/session_lent.h"
#include "user/session/session_losses.h"
#include "user/session/session_span.h"
#include "user/session/session_stopper.h"
#include "user/session/session_unwatched.h"
#include "user/session/session_told.h"
#include "user/source/listed_words.h"
#include "user/source/source_tracer.h"
#include "user/source/uring_words.h"

/* A process that is about to end may wait. */
static const u64 EXIT_PAUSE_NS = 10ULL * 60 * 1000000000;

/* The scan at hand: the context of what leaks_find() calls. */
struct scanning {
	struct session *session;
	struct process *process;
	const struct session_scan_options *wanted;
	struct scan *scan; /* borrowed; NULL = it takes no events yet */
	int err;	   /* of an event that it took */
	struct source_scan over_there;
	struct listed_words listed; /* io_uring requests */
};

void session_scan_event(struct session *s, const struct process *p, const struct heap_event *ev)
{
	struct scanning *n = s->scanning;

	if (p == n->process && n->scan && !n->err)
		n->err = scan_event(n->scan, ev);
}

/* Enter the events that have arrived; leaks_options. */
static int session_scan_drain(void *ctx, struct scan *scan, bool is_stopped)
{
	struct scanning *n = ctx;
	struct session *s = n->session;
	struct process *p = n->process;
	u64 nr_taints = p->lost.nr_taints;
	int err;

	n->scan = scan;
	err = session_forwards(s) ? session_forward_poll(s) : session_poll(s);
	if (err && err != -ENODATA)
		return err;
	if (process_is_over(p))
		return -ESRCH;
	/* The report is to show the heap of this moment. */
	if (is_stopped && n->wanted->is_last)
		s->ops->pause(s->source, p->target->pid);
	err = p->lost.nr_taints != nr_taints ? -ENODATA : n->err;
	return err || !n->wanted->lent ? err : session_lent_drained(s, n->wanted->lent, scan, is_stopped);
}

static int put_aside(void *ctx, const struct event_header *rec, size_t len)
{
	struct session *s = ctx;

	backlog_add(&s->backlog, rec, len);
	s->is_awaited |= s->ops->tracer && source_waits_at(rec->kind);
	return 0;
}

static bool session_scan_read_on(void *ctx)
{
	struct session *s = ctx;
	const struct sink sink = { s, put_aside, .is_aside = true };
	if (s->attending && s->attending->attend)
		s->attending->attend(s->attending->ctx);
	if (!backlog_is_full(&s->backlog) && s->ops->poll(s->source, &sink) < 0)
		debug("%s: no more events", s->ops->name);
	return s->is_awaited || backlog_is_urgent(&s->backlog);
}

int session_aside(void *ctx, int (*work)(void *arg), void *arg)
{
	struct session *s = ctx;
	const struct lent_books *lent = s->scanning ? s->scanning->wanted->lent : NULL;

	if (s->stop_ns || s->is_replayed)
		return work(arg);
	if (lent)
		return backlog_work(work, arg, lent->read_on, lent->ctx);
	return backlog_work(work, arg, session_scan_read_on, s);
}

/* leaks_options. */
static int session_scan_aside(void *ctx, int (*work)(void *arg), void *arg)
{
	const struct scanning *n = ctx;

	return session_aside(n->session, work, arg);
}

static int stop_target(void *ctx, u64 max_ns)
{
	const struct scanning *n = ctx;
	const struct session_stopper *stopper = n->wanted->stopper;

	return stopper->stop(stopper->ctx, n->process->target->pid, max_ns);
}

static void release_target(void *ctx)
{
	const struct scanning *n = ctx;
	const struct session_stopper *stopper = n->wanted->stopper;

	stopper->release(stopper->ctx, n->process->target->pid);
}

/* Let the machine where the process runs find the verdicts; leaks_options. */
static int session_scan_elsewhere(void *ctx, struct scan *scan, struct leaks *l)
{
	struct scanning *n = ctx;
	struct session *s = n->session;
	const struct sink aside_sink = { s, put_aside, .is_aside = true };
	struct source_scan *o = &n->over_there;
	int err;

	o->aside = &aside_sink;
	o->books = &l->books;
	err = session_told(s)->scan_blocks(s->source, o, scan);
	if (!err)
		err = session_scan_drain(n, scan, false);
	if (!err)
		err = scan_elsewhere(scan);
	if (!err)
		err = session_told(s)->scan_wait(s->source, o, scan);
	l->pause_ns = o->pause_ns;
	l->is_copied = o->is_copied;
	l->is_partial = o->is_partial;
	l->word_size = n->process->target->is_32bit ? 4 : 8;
	snprintf(l->why, sizeof(l->why), "%s", o->why);
	return err;
}

/* leaks_options. */
static int why_elsewhere(void *ctx, taddr_t addr, struct scan_chain **out)
{
	struct scanning *n = ctx;
	struct session *s = n->session;
	const struct sink aside_sink = { s, put_aside, .is_aside = true };

	n->over_there.aside = &aside_sink;
	return session_told(s)->scan_why(s->source, &n->over_there, addr, out);
}

/* Records up to the moment of the scan are entered; the blocks are sent later. */
static int begin_elsewhere(struct scanning *n, struct leaks_options *lo)
{
	const struct verdict_options *v = n->wanted->verdict;
	struct source_scan *o = &n->over_there;
	struct session *s = n->session;
	struct process *p = n->process;
	int err;

	if (IS_AGENT || !session_told(s)->scan_begin)
		return -EOPNOTSUPP;
	lo->elsewhere = session_scan_elsewhere;
	*o = (struct source_scan){ .pid = lo->pid,
				   .sink = &s->sink,
				   .heap = lo->heap,
				   .max_pause_ns = v->max_pause_ns,
				   .pointer_mask = v->pointer_mask,
				   .want_unaligned = v->unaligned,
				   .is_partial = lo->is_partial,
				   .is_last = n->wanted->is_last,
				   .has_all = !lo->has_losses,
				   .wants_whys = session_told(s)->scan_why && (lo->nr_whys || lo->why_addr) };
	lo->why = o->wants_whys ? why_elsewhere : NULL;
	err = session_told(s)->scan_begin(s->source, o);
	if (err)
		return leaks_none(&p->leaks, o->why) ? -ENOMEM : err;
	return process_is_over(p) ? -ESRCH : 0;
}

static int hold_target(void *ctx, u64 max_ns)
{
	const struct scanning *n = ctx;

	return n->session->ops->tracer->hold(n->session->source, n->process->target->pid, max_ns);
}

static void unhold_target(void *ctx)
{
	const struct scanning *n = ctx;

	n->session->ops->tracer->release(n->session->source, n->process->target->pid);
}

static int session_scan_read_regs(void *ctx, pid_t tid, struct arch_regs *regs)
{
	const struct scanning *n = ctx;

	return n->session->ops->tracer->read_regs(n->session->source, tid, regs);
}

static int call_by_source(void *ctx, struct thread_request *request)
{
	const struct scanning *n = ctx;

	return n->session->ops->tracer->call(n->session->source, n->process->target->pid, request);
}

static int call_by_stopper(void *ctx, struct thread_request *request)
{
	const struct scanning *n = ctx;
	const struct session_stopper *stopper = n->wanted->stopper;

	return stopper->call(stopper->ctx, n->process->target->pid, request);
}

/* Only the source can stop its targets. A process that is about to end is stopped already. */
static void stop_by_source(struct leaks_options *lo, struct snapshot_holder *holder, struct scanning *n)
{
	bool is_stopped = lo->by == STOP_BY_TRACER && !lo->stop;

	*holder = (struct snapshot_holder){ .ctx = n,
					    .read_regs = session_scan_read_regs,
					    .stop = hold_target,
					    .release = unhold_target,
					    .call = n->session->ops->tracer->call ? call_by_source : NULL };
	lo->holder = holder;
	lo->by = STOP_BY_OTHER;
	lo->stop = is_stopped ? NULL : hold_target;
	lo->release = is_stopped ? NULL : unhold_target;
}

/* The calling thread is the tracer, as in run. */
static void stop_by_stopper(struct leaks_options *lo, struct snapshot_holder *holder, struct scanning *n)
{
	*holder = (struct snapshot_holder){ .ctx = n,
					    .stop = stop_target,
					    .release = release_target,
					    .call = n->wanted->stopper->call ? call_by_stopper : NULL };
	lo->holder = holder;
	lo->stop = stop_target;
	lo->release = release_target;
}

/* leaks_options. */
static void session_scan_copying(void *ctx, pid_t pid, bool is_on)
{
	const struct scanning *n = ctx;
	struct session *s = n->session;

	if (s->ops->copying)
		s->ops->copying(s->source, pid, is_on);
}

static void set_pause(struct leaks_options *lo, const struct session_scan_options *o)
{
	bool is_ending = o->is_stopped && !o->stopper;

	lo->is_ending = is_ending;
	lo->max_pause_ns = o->verdict->max_pause_ns;
	if (!lo->max_pause_ns)
		lo->max_pause_ns = is_ending ? EXIT_PAUSE_NS : SNAPSHOT_MAX_PAUSE_MS * 1000000ULL;
	/* A client may ask for a shorter pause than the server allows. */
	if (o->lent && o->lent->max_pause_ns && o->lent->max_pause_ns < lo->max_pause_ns)
		lo->max_pause_ns = o->lent->max_pause_ns;
}

/* leaks_options. */
static void session_scan_take(void *ctx, struct scan *scan, struct snapshot *snap)
{
	const struct scanning *n = ctx;

	n->wanted->lent->take(n->wanted->lent->ctx, scan, snap);
}

/* Own books or lent ones, and how much of the heap they have. */
static void describe_books(struct scanning *n, struct leaks_options *lo)
{
	const struct lent_books *lent = n->wanted->lent;
	struct process *p = n->process;

	session_read_losses(n->session, p);
	lo->has_losses = p->lost.now.allocs || p->lost.now.other || heap_lost(p->heap);
	lo->is_partial = !p->target->is_started || lo->has_losses || p->tuned.has_unseen ||
			 (HAS_SAMPLES && heap_sample_bytes(p->heap));
	if (IS_SERVE_ONLY || lent) {
		lo->has_losses = !lent->has_all;
		lo->is_partial = lent->is_partial;
		lo->books = lent->books;
		lo->take = session_scan_take;
	}
	lo->keeps_freed = !lo->has_losses && target_keeps_freed(p->target);
}

/* Events so far are entered; find the verdict. */
static void find_leaks(struct scanning *n, struct leaks_options *lo)
{
	struct session_books books;
	struct session *s = n->session;
	struct process *p = n->process;

	describe_books(n, lo);
	leaks_free(p->leaks);
	p->leaks = NULL;
	p->is_asked = false;
	if (session_told(s) && begin_elsewhere(n, lo))
		return;
	if (!IS_AGENT) {
		session_books_init(&books, p, lo);
		uring_words_list(&n->listed, p->target->pid, "scan", &p->has_told_requests);
	}
	s->scanning = n;
	if (leaks_find(&p->leaks, lo))
		warn("scan: PID %d: out of memory", p->target->pid);
	if (!IS_AGENT) {
		session_books_fini(&books);
		free(n->listed.items);
	}
	p->is_price_known = true;
	s->scanning = NULL;
	if (lo->why)
		session_told(s)->scan_over(s->source);
}

struct session_scan_adding {
	int (*add)(void *add_ctx, taddr_t word, u32 where);
	void *ctx;
};

static int session_scan_add_stack(void *ctx, taddr_t start)
{
	const struct session_scan_adding *a = ctx;

	return a->add(a->ctx, start, KERNEL_SIGNAL_STACK);
}

/* struct kernel_words. */
static int session_scan_kernel_words(void *ctx, int (*add)(void *add_ctx, taddr_t word, u32 where),
				     void *add_ctx)
{
	const struct scanning *n = ctx;
	const struct session *s = n->session;
	struct session_scan_adding adding = { add, add_ctx };
	int err = s->ops->kernel_words ? s->ops->kernel_words(s->source, n->process->target->pid,
							      session_scan_add_stack, &adding)
				       : 0;

	if (err && err != -ENOMEM)
		debug("scan: PID %d: cannot list signal stacks: %s", n->process->target->pid, strerror(-err));
	err = err == -ENOMEM ? err : 0;
	for (size_t i = 0; i < n->listed.nr && !err; i++)
		err = add(add_ctx, n->listed.items[i].word, KERNEL_REQUEST);
	return err;
}

static bool session_scan_has_stopper(const struct session_stopper *stopper, const struct process *p)
{
	return stopper && (IS_AGENT || !stopper->watches || stopper->watches(stopper->ctx, p->target->pid));
}

void session_scan_process(struct session *s, struct process *p, const struct session_scan_options *o)
{
	const struct verdict_options *v = o->verdict;
	struct scanning n = { .session = s, .process = p, .wanted = o };
	const struct kernel_words kernel = { &n, session_scan_kernel_words };
	bool has_stopper = session_scan_has_stopper(o->stopper, p);
	struct leaks_options lo = {
		.pid = p->target->pid,
		.heap = p->heap,
		.stacks = s->stacks,
		.way = (enum snapshot_way)v->snapshot,
		.nr_jobs = v->nr_jobs,
		.max_copy = v->max_copy,
		.max_memory = IS_SERVE_ONLY || o->lent ? 0 : session_memory_left(s),
		.is_price_known = p->is_price_known,
		.by = o->is_stopped || has_stopper ? STOP_BY_TRACER : STOP_BY_US,
		.pointer_mask = v->pointer_mask,
		.want_unaligned = v->unaligned,
		.nr_whys = v->nr_whys,
		.why_addr = v->why_addr,
		.nr_samples = v->nr_samples,
		.content_bytes = v->content_bytes,
		.before = p->reported,
		.nr_before = p->nr_reported,
		.is_unwanted = s->options->is_unwanted,
		.kinds = v->leaks,
		.marks = o->marks,
		.ctx = &n,
		.drain = session_scan_drain,
		.copying = session_scan_copying,
		.aside = session_scan_aside,
		.kernel = IS_AGENT ? NULL : &kernel,
	};
	struct snapshot_holder holder;

	set_pause(&lo, o);
	s->attending = o->stopper;
	if (has_stopper)
		stop_by_stopper(&lo, &holder, &n);
	if (s->ops->tracer)
		stop_by_source(&lo, &holder, &n);
	session_look(s, p);
	/* A block is too young for a verdict if its event is entered only after the scan has begun. */
	if (session_poll(s))
		debug("scan: no more events");
	/* Without known blocks there is nothing to judge: do not stop the process. */
	if (!process_is_over(p) && !process_is_unwatched(p))
		find_leaks(&n, &lo);
	s->attending = NULL;
}

static void scan_and_record(struct session *s, struct process *p, struct session_scan_options *o)
{
	const char *before = control_doing(s->control, "with a leak verdict");
	char what[32];

	snprintf(what, sizeof(what), "scan: PID %d", (int)p->target->pid);
	if (s->options->shows_progress)
		progress_begin(what);
	o->verdict = &s->options->verdict;
	o->marks = &p->marks;
	session_scan_process(s, p, o);
	if (!IS_AGENT)
		session_note_verdict(p);
	/* A recording has blocks of its events alone. */
	if (p->leaks && (IS_AGENT || !process_saw_few(p)))
		recorder_scan(s->recorder, p->target->pid, p->leaks, p->heap, p->has_last_verdict);
	progress_end();
	control_doing(s->control, before);
}

void session_scan(struct session *s, const struct session_stopper *stopper, bool is_last)
{
	struct session_scan_options o = { .stopper = stopper, .is_last = is_last };
	size_t nr = s->nr_processes;

	if (session_has_span(s))
		return;
	if (is_last && control_is_cut(s->control)) {
		s->cut_note = "no leak verdict: heaptap was busy when the signal came";
		warn("%s: %s", s->options->command, s->cut_note);
		return;
	}
	/* Not those that begin meanwhile: who executes programs again and again always has one that was not judged. */
	for (size_t i = 0; i < nr; i++) {
		struct process *p = s->processes[i];

		if (process_is_over(p) || p->has_last_verdict)
			continue;
		p->marks.is_last = is_last;
		scan_and_record(s, p, &o);
	}
	s->has_judged |= is_last;
}

void session_scan_one(struct session *s, pid_t pid)
{
	struct session_scan_options o = { 0 };
	struct process *p = session_find(s, (u32)pid);

	if (!p || process_is_over(p) || p->has_last_verdict || session_has_span(s))
		return;
	p->marks.is_last = false;
	scan_and_record(s, p, &o);
}

void session_scan_before_exec(struct session *s, pid_t pid, bool is_stopped,
			      const struct session_stopper *stopper)
{
	struct session_scan_options o = { .stopper = is_stopped ? NULL : stopper, .is_stopped = is_stopped };
	struct process *p = session_find(s, (u32)pid);

	if (!p || process_is_over(p) || p->has_last_verdict || session_has_span(s))
		return;
	p->exec = PROCESS_JUDGED;
	scan_and_record(s, p, &o);
}

void session_scan_exiting(struct session *s, pid_t pid)
{
	struct session_scan_options o = { .is_stopped = true };
	struct process *p = session_find(s, pid);

	if (!p || p->has_last_verdict || session_has_span(s))
		return;
	p->has_last_verdict = p->marks.is_last = true;
	scan_and_record(s, p, &o);
	if (!IS_AGENT)
		session_residence_at_end(s, p);
}

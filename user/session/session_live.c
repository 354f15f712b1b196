/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Questions of a console to a running session, and a new start of its heaps. */
#include "user/session/session_live.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "user/heap/heap_sample.h"
#include "user/lib/array.h"
#include "user/lib/clock.h"
#include "user/lib/proc.h"
#include "user/session/control.h"
#include "user/session/session_losses.h"
#include "user/session/session_private.h"
#include "user/session/session_process.h"
#include "user/session/session_threads.h"
#include "user/session/session_told.h"
#include "user/source/call_price.h"

bool session_knows(const struct session *s, pid_t pid)
{
	for (size_t i = 0; i < s->nr_processes; i++)
		if (s->processes[i]->target->pid == pid)
			return true;
	return false;
}

u64 session_source_ns(const struct session *s)
{
	return session_told(s) ? session_told(s)->now_ns(s->source) : clock_now_ns();
}

u64 session_real_ns(const struct session *s, u64 now_ns)
{
	if (s->epoch_ns)
		return s->epoch_ns + now_ns;
	return s->is_replayed || session_told(s) ? 0 : clock_ns(CLOCK_REALTIME) - (clock_now_ns() - now_ns);
}

u64 session_events(const struct session *s)
{
	u64 nr = 0;

	for (size_t i = 0; i < s->nr_processes; i++)
		nr += s->processes[i]->nr_events;
	return nr;
}

/* In a short time nobody minds breakpoints; and one part of so many is much, for a report. */
enum { LEAST_CPU_NS = 300 * 1000 * 1000, SHARE = 5 };

static u64 calls_of(const struct process *p)
{
	return p->last.calls - p->first.calls;
}

struct session_probes session_probes(const struct session *s)
{
	const struct process *most = NULL;

	if (IS_AGENT || strcmp(session_backend(s), source_bpf.name) != 0)
		return (struct session_probes){ 0 };
	for (size_t i = 0; i < s->nr_processes; i++)
		if (calls_of(s->processes[i]) > (most ? calls_of(most) : 0))
			most = s->processes[i];
	if (!most)
		return (struct session_probes){ 0 };
	return (struct session_probes){
		.process = most->target,
		.calls = calls_of(most),
		.ns = session_price(&most->first, &most->last, &s->call_price),
		.cpu_ns = most->last.cpu_ns - most->first.cpu_ns,
		.is_sure = s->call_price.traps_ns,
	};
}

/* The price of breakpoints, if it is high. */
static void price_breakpoints(const struct session *s, struct report_cost *cost)
{
	struct session_probes p = session_probes(s);

	if (!p.is_sure || p.cpu_ns < LEAST_CPU_NS || p.ns * SHARE < p.cpu_ns)
		return;
	cost->call_ns = p.ns / p.calls;
	cost->inline_call_ns = CALL_BY_CODE_NS;
	cost->probes_permille = p.ns * 1000 / p.cpu_ns;
}

struct report_cost session_cost(const struct session *s)
{
	bool is_known = !s->is_replayed && !s->ops->tracer;
	struct report_cost cost = { .events = session_events(s),
				    .cpu_ns = is_known ? clock_ns(CLOCK_PROCESS_CPUTIME_ID) - s->start_cpu_ns
						       : 0 };

	if (cost.cpu_ns)
		price_breakpoints(s, &cost);
	return cost;
}

void session_look_at_load(struct session *s)
{
	/* Each process takes some 50 us: looks take at most some 0.1 % of the time. */
	const u64 period_ns = 100000000 + 50000000 * (u64)s->nr_processes;
	u64 now_ns = clock_now_ns();

	if (IS_AGENT || session_forwards(s) || s->is_replayed || session_told(s) ||
	    now_ns < s->load_looked_ns + period_ns)
		return;
	s->load_looked_ns = now_ns;
	call_price_look(&s->call_price, s->ops, s->source, session_events(s), now_ns);
	for (size_t i = 0; i < s->nr_processes; i++) {
		struct process *p = s->processes[i];
		struct process_moment now;

		if (process_is_over(p) || !session_price_look(&now, p->target->pid))
			continue;
		now.calls = p->nr_events + session_lost_calls(s, p);
		if (!p->first.time_ns)
			p->first = now;
		p->last = now;
	}
}

const char *session_backend(const struct session *s)
{
	return s->ops->kind ? s->ops->kind(s->source) : s->ops->name;
}

void session_set_start(struct session *s, u64 start_ns)
{
	s->start_ns = start_ns;
	s->start_cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

struct session_totals session_totals(struct session *s)
{
	struct session_totals sums = { .events = session_events(s) };

	for (size_t i = 0; i < s->nr_processes; i++)
		sums.nr_running += !process_is_over(s->processes[i]);
	for (size_t i = 0; i < s->nr_processes; i++) {
		struct process *p = s->processes[i];

		session_read_losses(s, p);
		sums.lost += p->lost.now.allocs + p->lost.now.frees + p->lost.now.stacks + p->lost.now.other +
			     heap_lost(p->heap);
		if (p->is_hidden || (sums.nr_running && process_is_over(p)))
			continue;
		sums.live_bytes += heap_totals(p->heap).live_bytes;
		sums.live_blocks += heap_totals(p->heap).live_blocks;
		sums.is_sampled |= HAS_SAMPLES && heap_sample_bytes(p->heap);
	}
	return sums;
}

void session_listen(struct session *s, struct session_listener *l)
{
	l->next = s->listeners;
	s->listeners = l;
}

void session_unlisten(struct session *s, const struct session_listener *l)
{
	for (struct session_listener **at = &s->listeners; *at; at = &(*at)->next) {
		if (*at != l)
			continue;
		*at = l->next;
		return;
	}
}

struct session_sums session_sums(const struct session *s, pid_t pid)
{
	struct session_sums sums = { 0 };

	for (size_t i = 0; i < s->nr_processes; i++) {
		const struct process *p = s->processes[i];
		struct heap_totals t = heap_totals(p->heap);

		if (p->is_hidden || (pid && p->target->pid != pid))
			continue;
		sums.live_bytes += t.live_bytes;
		sums.live_blocks += t.live_blocks;
		sums.peak_bytes += t.peak_bytes;
		sums.allocs += t.allocs;
		sums.frees += t.frees + t.unknown_frees;
	}
	return sums;
}

const struct call_price *session_call_price(const struct session *s)
{
	return &s->call_price;
}

int session_forget(struct session *s, struct process *p)
{
	struct heap *old = p->heap;
	int err = session_new_heap(s, &p->heap);

	if (err) {
		p->heap = old;
		return err;
	}
	session_threads_keep(s, p, old);
	heap_free(old);
	session_read_losses(s, p);
	p->target->is_started = false;
	p->lost.before = s->ops->losses(s->source, p->target->pid);
	p->lost.now = (struct losses){ 0 };
	p->lost.nr_false_stacks = p->lost.nr_unentered = p->nr_events = 0;
	p->lost.has_gaps = false;
	p->first = p->last = IS_AGENT ? p->first : (struct process_moment){ 0 };
	p->trend = (struct trend){ 0 };
	leak_marks_fini(&p->marks);
	leak_marks_fini(&p->asked_marks);
	p->marks = p->asked_marks = (struct leak_marks){ 0 };
	leaks_free(p->leaks);
	p->leaks = NULL;
	free(p->reported);
	p->reported = NULL;
	p->nr_reported = 0;
	p->tuned.nr_left_out = 0;
	if (s->options->scan != SCAN_NEVER && !session_told(s))
		heap_keep_cover(p->heap);
	err = session_begin_check(s, p);
	session_blur(s, p);
	/* Pause and filter apply to the new heap too. */
	session_tune_process(s, p);
	return err;
}

int session_reset(struct session *s, pid_t pid)
{
	int err = 0;

	if (s->recorder)
		return -EBUSY;
	for (size_t i = 0; i < s->nr_processes && !err; i++)
		if (!process_is_over(s->processes[i]) && (!pid || s->processes[i]->target->pid == pid))
			err = session_forget(s, s->processes[i]);
	if (pid)
		return err;
	s->nr_allocs = 0;
	session_set_start(s, session_told(s) ? session_told(s)->now_ns(s->source) : clock_now_ns());
	return err;
}

struct thread_stop session_stop_reason(const struct session *s, pid_t tid)
{
	return s->ops->stop_reason ? s->ops->stop_reason(s->source, tid)
				   : (struct thread_stop){ .why = THREAD_STOP_LOOK };
}

bool session_trapped(const struct session *s, pid_t pid, pid_t tid)
{
	return s->ops->trapped && s->ops->trapped(s->source, pid, tid);
}

int session_pids(const struct session *s, pid_t **pids, size_t *nr)
{
	*pids = calloc(s->nr_processes + 1, sizeof(**pids));
	*nr = 0;
	for (size_t i = 0; *pids && i < s->nr_processes; i++)
		if (!process_is_over(s->processes[i]))
			(*pids)[(*nr)++] = s->processes[i]->target->pid;
	return *pids ? 0 : -ENOMEM;
}

void session_follow(struct session *s, bool is_on)
{
	if (s->ops->follow)
		s->ops->follow(s->source, is_on);
}

/* May somebody ask why @l was left? A child in the memory of its parent is in no list yet. */
static bool session_names_left(const struct session *s, const struct left_process *l)
{
	struct proc_stat stat;

	for (size_t i = 0; i < s->nr_processes; i++)
		if (s->processes[i]->target->pid == l->pid &&
		    s->processes[i]->target->start_time == l->start_time)
			return true;
	return !proc_read_stat(&stat, l->pid) && stat.start_time == l->start_time;
}

static void session_forget_left(struct session *s)
{
	size_t nr = 0;

	for (size_t i = 0; i < s->nr_left; i++)
		if (session_names_left(s, &s->left[i]))
			s->left[nr++] = s->left[i];
	s->nr_left = nr;
	s->many_left = nr < LEFT_FEW / 2 ? LEFT_FEW : 2 * nr;
}

void session_left(struct session *s, pid_t pid, enum thread_stop_why why)
{
	struct proc_stat stat;

	if (s->nr_left >= s->many_left)
		session_forget_left(s);
	/* Without memory a note is missing. */
	if (proc_read_stat(&stat, pid) || array_extend(s->left, s->nr_left))
		return;
	s->left[s->nr_left++] = (struct left_process){ pid, why, stat.start_time };
}

enum thread_stop_why session_why_left(const struct session *s, const struct target *t)
{
	for (size_t i = 0; i < s->nr_left; i++)
		if (s->left[i].pid == t->pid && s->left[i].start_time == t->start_time)
			return s->left[i].why;
	return THREAD_STOP_LOOK;
}

void session_leave_out(struct session *s, size_t nr)
{
	s->nr_left_out += nr;
}

/* Processes do not wait for a heaptap that is stopped. */
static void session_sleep(void *ctx, bool is_asleep)
{
	struct session *s = ctx;

	s->ops->sleep(s->source, is_asleep);
}

void session_guard(struct session *s, struct control *c)
{
	int fds[SOURCE_MAX_LIFELINES];
	size_t nr = s->ops->lifelines ? s->ops->lifelines(s->source, fds) : 0;

	s->control = c;
	for (size_t i = 0; i < nr; i++)
		control_guard_probes(c, fds[i]);
	if (!IS_AGENT && c && s->ops->sleep)
		control_at_sleep(c, session_sleep, s);
}

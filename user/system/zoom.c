/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Begins and ends to trace growing processes. */
#include "user/system/zoom.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "user/lib/cleanup.h"
#include "user/lib/clock.h"
#include "user/lib/log.h"
#include "user/session/control.h"
#include "user/session/session.h"
#include "user/session/session_live.h"
#include "user/system/answer.h"
#include "user/system/rows.h"
#include "user/system/spare.h"
#include "user/system/zoom_price.h"

/* Chooses the next process to trace, and the one that is left for it. */

/* The first verdict has no growth since an earlier one. A leak needs none. */
enum { ENOUGH_VERDICTS = 2 };

static bool zoom_is_traced(const struct zooms *z, pid_t pid)
{
	for (u32 i = 0; i < z->nr; i++)
		if (z->list[i].pid == pid)
			return true;
	return false;
}

/* Is @p to be traced, if there is room? A process that is spared is said once. */
static bool zoom_is_wanted(struct zooms *z, struct watch *w, const struct watched *p)
{
	const char *why;

	if (p->state != WATCHED_GROWS && !z->options->is_chosen && !p->is_asked)
		return false;
	if (zoom_is_traced(z, p->pid) || w->now_ns < p->refused_ns)
		return false;
	why = spare_reason(z->options->spare, p);
	if (!why)
		return true;
	info("system: does not trace %s (pid %d): %s", p->comm, (int)p->pid, why);
	watch_refuse(w, p->pid, UINT64_MAX);
	return false;
}

/* Since when @p waits. */
static u64 zoom_waits_since(const struct zoom_answer *a, const struct watched *p)
{
	if (a)
		return a->end_ns;
	return p->wanted_ns ? p->wanted_ns : p->first_ns;
}

/* Does @p come before @q? */
static bool zoom_comes_before(const struct zooms *z, const struct watched *p, const struct watched *q)
{
	const struct zoom_answer *a = zooms_answer(z, p->pid, p->start_time);
	const struct zoom_answer *b = zooms_answer(z, q->pid, q->start_time);

	if (p->is_asked != q->is_asked)
		return p->is_asked;
	if (!a != !b)
		return !a;
	return zoom_waits_since(a, p) < zoom_waits_since(b, q);
}

/* Why to leave @zoom for @p; NULL = @p has to wait. */
static const char *zoom_why_replace(const struct zooms *z, const struct watch *w, const struct zoom *zoom,
				    const struct watched *p)
{
	const struct zoom_answer *a = &z->answers[zoom->answer];
	const struct watched *now = watch_find(w, zoom->pid);

	if (now && now->is_asked)
		return NULL;
	if (p->is_asked)
		return "a report on another process is wanted";
	/* A process that was traced before has its answer. */
	if (zooms_answer(z, p->pid, p->start_time))
		return NULL;
	return a->nr_verdicts >= ENOUGH_VERDICTS || (a->nr_verdicts && a->kind == ANSWER_LEAKS)
		       ? "it has its verdict, and another process waits"
		       : NULL;
}

/* Make room for the process of @step, by the place that was kept longest. */
static void zoom_make_room(const struct zooms *z, const struct watch *w, struct zoom_step *step)
{
	step->leave = z->nr;
	for (u32 i = 0; i < z->nr; i++) {
		const char *why = zoom_why_replace(z, w, &z->list[i], step->trace);

		if (!why || (step->why && z->list[i].begin_ns >= z->list[step->leave].begin_ns))
			continue;
		step->why = why;
		step->leave = i;
	}
	if (!step->why)
		step->trace = NULL;
}

int zoom_places_next(struct zooms *z, struct watch *w, struct zoom_step *out)
{
	auto_free const struct watched **list = NULL;
	int err = watch_rank(w, &list);

	*out = (struct zoom_step){ .leave = z->nr };
	if (err)
		return err;
	/* Of those that wait for the same time the fastest is the first one. */
	for (size_t i = 0; i < w->nr; i++)
		if (zoom_is_wanted(z, w, list[i]) &&
		    (!out->trace || zoom_comes_before(z, list[i], out->trace)))
			out->trace = list[i];
	if (out->trace && z->nr >= z->options->nr)
		zoom_make_room(z, w, out);
	return 0;
}

static const u64 verdict_after_ns[] = { 10 * SECOND_NS, 30 * SECOND_NS }; /* of tracing; then */
static const u64 verdict_every_ns = 60 * SECOND_NS;
static const u64 quiet_for_ns = 60 * SECOND_NS; /* a process that does not grow any more is left */
static const u64 refuse_for_ns = 3600 * SECOND_NS;

int zooms_init(struct zooms *z, const struct zoom_options *options)
{
	*z = (struct zooms){ .options = options, .epoll = epoll_create1(EPOLL_CLOEXEC) };
	if (z->epoll < 0)
		return -errno;
	z->answers = calloc(ZOOM_MAX_ANSWERS, sizeof(*z->answers));
	if (!z->answers) {
		close(z->epoll);
		z->epoll = -1;
		return -ENOMEM;
	}
	return 0;
}

void zooms_fini(struct zooms *z)
{
	for (u32 i = 0; i < z->nr; i++)
		session_free(z->list[i].session);
	if (z->answers)
		close(z->epoll);
	free(z->answers);
}

const struct zoom_answer *zooms_answer(const struct zooms *z, pid_t pid, u64 start_time)
{
	for (u32 i = 0; i < z->nr_answers; i++)
		if (z->answers[i].pid == pid && z->answers[i].start_time == start_time)
			return &z->answers[i];
	return NULL;
}

/* ---- the end ---- */

struct zoom_answer *zoom_answer_of(struct zooms *z, const struct zoom *zoom)
{
	return &z->answers[zoom->answer];
}

void zoom_judge(struct zooms *z, struct zoom_answer *f, struct session *s, bool is_one)
{
	/* Probes that a signal took out have not seen the last calls. */
	bool wants_scan = z->options->wants_scan && !control_is_cut(z->control);
	char where[sizeof(f->where)], text[640];
	enum answer_kind kind = f->kind;

	memcpy(where, f->where, sizeof(where));
	if (is_one && wants_scan)
		session_scan_one(s, f->pid);
	if (is_one ? answer_take(f, s, f->pid) : answer_look(f, s, wants_scan))
		return;
	/* An answer is news if it is another one. */
	if (kind == f->kind && !strcmp(where, f->where))
		return;
	answer_describe(f, text, sizeof(text));
	info("system: %s (pid %d): %s", f->comm, (int)f->pid, text);
}

static void zoom_look(struct zooms *z, const struct zoom *zoom)
{
	zoom_judge(z, zoom_answer_of(z, zoom), zoom->session, false);
}

static void zoom_end(struct zooms *z, struct watch *w, u32 i)
{
	struct zoom *zoom = &z->list[i];

	zoom_answer_of(z, zoom)->end_ns = clock_now_ns();
	watch_hold(w, zoom->pid, false);
	if (z->at_end)
		z->at_end(z->end_ctx, zoom->session);
	session_stop(zoom->session);
	session_free(zoom->session);
	z->list[i] = z->list[--z->nr];
}

void zoom_leave(struct zooms *z, struct watch *w, u32 i, const char *why)
{
	struct zoom *zoom = &z->list[i];
	struct zoom_answer *f = zoom_answer_of(z, zoom);

	/* A process that ended early: who held memory then is known, without a verdict. */
	if (!f->nr_verdicts && answer_look(f, zoom->session, false))
		debug("system: no answer on PID %d", (int)f->pid);
	if (why)
		info("system: leaves %s (pid %d): %s", f->comm, (int)f->pid, why);
	zoom_end(z, w, i);
}

/* NULL = go on. */
static const char *why_leave(const struct zooms *z, const struct zoom *zoom, const struct watched *p,
			     u64 now_ns)
{
	if (!p || p->start_time != zoom->start_time || !session_running(zoom->session))
		return "it has ended";
	if (z->options->is_chosen || p->is_asked || p->state == WATCHED_GROWS ||
	    now_ns - zoom->begin_ns < quiet_for_ns)
		return NULL;
	return now_ns - p->grew_ns >= quiet_for_ns ? "it does not grow any more" : NULL;
}

static void leave_some(struct zooms *z, struct watch *w)
{
	for (u32 i = z->nr; i-- > 0;) {
		const struct watched *p = watch_find(w, z->list[i].pid);
		const char *why = why_leave(z, &z->list[i], p, w->now_ns);

		if (p && p->start_time == z->list[i].start_time) {
			zoom_answer_of(z, &z->list[i])->bytes_per_s = p->line.bytes_per_s;
			zoom_answer_of(z, &z->list[i])->needs = watched_needs(p);
		}
		if (why)
			zoom_leave(z, w, i, why);
	}
}

/* ---- the beginning ---- */

struct zoom_answer *zoom_new_answer(struct zooms *z, const struct watched *p)
{
	struct zoom_answer *f = NULL;

	for (u32 i = 0; i < z->nr_answers; i++)
		if (z->answers[i].pid == p->pid && z->answers[i].start_time == p->start_time)
			return &z->answers[i];
	if (z->nr_answers < ZOOM_MAX_ANSWERS)
		return &z->answers[z->nr_answers++];
	for (u32 i = 0; i < z->nr_answers; i++)
		if (z->answers[i].end_ns && (!f || z->answers[i].end_ns < f->end_ns))
			f = &z->answers[i];
	z->nr_dropped++;
	return f;
}

static bool zoom_answer_is_on(const struct zoom_answer *f, const struct watched *p)
{
	return f->pid == p->pid && f->start_time == p->start_time;
}

void zoom_begin_answer(struct zoom_answer *f, const struct watched *p, u64 now_ns)
{
	/* The answer of an earlier window stays until there is a new one. */
	if (zoom_answer_is_on(f, p)) {
		f->begin_ns = now_ns;
		f->end_ns = f->nr_verdicts = 0;
		return;
	}
	*f = (struct zoom_answer){ .pid = p->pid,
				   .start_time = p->start_time,
				   .begin_ns = now_ns,
				   .first_ns = now_ns,
				   .bytes_per_s = p->line.bytes_per_s,
				   .needs = watched_needs(p),
				   .needed = watched_needs(p) };
	memcpy(f->comm, p->comm, sizeof(f->comm));
	container_describe(&p->container, f->container, sizeof(f->container));
}

void zoom_say_begin(const struct watched *p)
{
	char rate[80];

	row_rate(p->line.bytes_per_s, rate, sizeof(rate));
	if (p->state == WATCHED_GROWS)
		info("system: traces %s (pid %d): it grows by %s", p->comm, (int)p->pid, rate);
	else
		info("system: traces %s (pid %d): %s", p->comm, (int)p->pid,
		     p->is_asked ? "a report on it is wanted" : "it was chosen");
}

/* Trace @p. Errors are logged. */
static void zoom_begin(struct zooms *z, struct watch *w, const struct watched *p)
{
	struct zoom zoom = { .pid = p->pid, .start_time = p->start_time, .begin_ns = w->now_ns };
	struct epoll_event event = { .events = EPOLLIN };
	struct zoom_answer *f;
	int err = session_new(&zoom.session, z->options->session, NULL, false);

	if (err == -ENOMEM) {
		watch_refuse(w, p->pid, w->now_ns + quiet_for_ns);
		return;
	}
	if (err) {
		z->is_off = true;
		warn("system: no process is traced: only their sizes are shown");
		return;
	}
	if (session_attach(zoom.session, p->pid, false)) {
		watch_refuse(w, p->pid, w->now_ns + refuse_for_ns);
		session_free(zoom.session);
		return;
	}
	session_guard(zoom.session, z->control);
	f = zoom_new_answer(z, p);
	if (!f) {
		watch_refuse(w, p->pid, w->now_ns + refuse_for_ns);
		session_stop(zoom.session);
		session_free(zoom.session);
		return;
	}
	/* The second window was announced. */
	if (!zoom_answer_is_on(f, p) || f->saving != SAVING_WINDOWS)
		zoom_say_begin(p);
	/* Blocks from before its probes were in are not known. */
	watch_measure_again(w, p->pid);
	zoom_begin_answer(f, p, w->now_ns);
	zoom.answer = (u32)(f - z->answers);
	if (session_has_no_allocator(zoom.session)) {
		watch_refuse(w, p->pid, w->now_ns + refuse_for_ns);
		if (answer_look(f, zoom.session, false))
			debug("system: no answer on PID %d", (int)p->pid);
		f->end_ns = clock_now_ns();
		session_stop(zoom.session);
		session_free(zoom.session);
		return;
	}
	zoom_save_again(f, zoom.session);
	/* Without it events wait until the next look. */
	if (session_wait_fd(zoom.session) >= 0 &&
	    epoll_ctl(z->epoll, EPOLL_CTL_ADD, session_wait_fd(zoom.session), &event))
		debug("system: epoll: %s", strerror(errno));
	z->list[z->nr++] = zoom;
	watch_hold(w, p->pid, true);
}

/* One in a look: it takes some 200 ms. */
static void begin_one(struct zooms *z, struct watch *w)
{
	struct zoom_step step;

	if (z->is_off || !z->options->nr || zoom_places_next(z, w, &step) || !step.trace)
		return;
	if (step.leave < z->nr)
		zoom_leave(z, w, step.leave, step.why);
	zoom_begin(z, w, step.trace);
}

u64 zoom_next_verdict_ns(const struct zoom_answer *a)
{
	return a->nr_verdicts < ARRAY_SIZE(verdict_after_ns) ? a->begin_ns + verdict_after_ns[a->nr_verdicts]
							     : a->time_ns + verdict_every_ns;
}

static void find_verdicts(struct zooms *z, u64 now_ns)
{
	for (u32 i = 0; i < z->nr; i++)
		if (now_ns >= zoom_next_verdict_ns(zoom_answer_of(z, &z->list[i])))
			zoom_look(z, &z->list[i]);
}

void zooms_decide(struct zooms *z, struct watch *w)
{
	leave_some(z, w);
	find_verdicts(z, w->now_ns);
	zooms_price(z, w);
	begin_one(z, w);
}

void zooms_poll(struct zooms *z)
{
	for (u32 i = 0; i < z->nr; i++) {
		struct zoom *zoom = &z->list[i];

		if (session_poll(zoom->session))
			debug("system: PID %d: no more events", (int)zoom->pid);
		code_choice_round(&zoom->choice, zoom->session, z->options->max_cost, true);
	}
}

void zooms_end(struct zooms *z, struct watch *w)
{
	while (z->nr) {
		struct zoom *zoom = &z->list[z->nr - 1];

		if (session_running(zoom->session))
			zoom_look(z, zoom);
		zoom_end(z, w, z->nr - 1);
	}
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Chooses the next process to trace, and the one that is left for it. */
#include "user/system/zoom_places.h"

#include <stdlib.h>

#include "user/lib/cleanup.h"
#include "user/lib/log.h"
#include "user/system/answer.h"
#include "user/system/spare.h"

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

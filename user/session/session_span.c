/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A session on a part of a recording (--between): count only blocks that were allocated between two moments. */
#include "user/session/session_span.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "user/heap/heap.h"
#include "user/lib/human.h"
#include "user/lib/log.h"
#include "user/session/session_private.h"
#include "user/session/session_process.h"

void session_span_set(struct session *s, const struct span *span)
{
	s->span.span = span;
	/* Verdicts are about all blocks, not only about those of the span. */
	s->wants_notes = false;
}

bool session_has_span(const struct session *s)
{
	return !IS_AGENT && s->span.span;
}

bool session_span_has_begun(const struct session *s)
{
	return !IS_AGENT && s->span.nr > SPAN_FROM;
}

bool session_span_is_over(const struct session *s)
{
	return !IS_AGENT && s->span.nr == NR_SPAN_MOMENTS;
}

/* Forget all counts, as if tracing began now. */
static void session_span_begin(struct session *s, u64 now_ns)
{
	s->start_ns = now_ns;
	for (size_t i = 0; i < s->nr_processes; i++) {
		struct process *p = s->processes[i];

		p->is_hidden |= process_is_over(p);
		p->trend = (struct trend){ 0 };
		p->lost.now = (struct losses){ 0 };
		free(p->reported);
		p->reported = NULL;
		p->nr_reported = 0;
		p->lost.nr_false_stacks = 0;
		if (process_is_over(p))
			continue;
		p->lost.before = s->ops->losses(s->source, p->target->pid);
		heap_span_begin(p->heap);
	}
}

static void session_span_end(struct session *s)
{
	for (size_t i = 0; i < s->nr_processes; i++)
		if (!process_is_over(s->processes[i]))
			heap_span_end(s->processes[i]->heap);
}

/* Do what the last moment that has passed asks for. */
static void session_span_act(struct session *s)
{
	u64 now_ns = s->span.times[s->span.nr - 1];

	if (s->span.nr - 1 == SPAN_FROM)
		session_span_begin(s, now_ns);
	else if (s->span.nr - 1 == SPAN_TO && !s->halted_fd)
		session_span_end(s);
	else if (s->is_replayed)
		s->stop_ns = now_ns;
}

void session_span_go_on(struct session *s, u64 now_ns, const char *marker)
{
	if (!s->start_ns)
		s->start_ns = now_ns;
	if (!s->span.nr)
		s->span.start_ns = s->start_ns;
	s->span.last_ns = now_ns;
	while (span_pass(&s->span, now_ns, marker)) {
		session_span_act(s);
		/* A marker is one moment only, even if two moments have its name. */
		if (s->span.span->marks[s->span.nr - 1].kind == SPAN_AT_NAME)
			marker = NULL;
	}
}

bool session_span_is_simple(const struct span *span)
{
	const struct span_mark *from = &span->marks[SPAN_FROM];

	return from->kind == SPAN_AT_TIME && !from->ns && span->marks[SPAN_AT].kind == SPAN_WITH_LAST;
}

/* Does the moment @m come behind the end of the span that is over? Of a second marker of a name nothing is known. */
static bool comes_later(const struct session *s, const struct span_mark *m)
{
	if (m->kind == SPAN_AT_TIME)
		return s->span.start_ns + m->ns >= s->span.times[SPAN_TO];
	for (size_t i = 0; i < s->marks.nr; i++)
		if (!strcmp(s->marks.list[i].name, m->name))
			return false;
	return !s->marks.nr_left_out;
}

bool session_span_extend(struct session *s, const struct span *span)
{
	if (!s->halted_fd || !session_span_is_over(s) || !session_span_is_simple(span) ||
	    !comes_later(s, &span->marks[SPAN_TO]))
		return false;
	s->span.span = span;
	s->span.nr = SPAN_TO;
	s->stop_ns = 0;
	s->nr_late_marks = 0;
	return true;
}

void session_span_new_heap(const struct session *s, struct heap *heap)
{
	if (session_has_span(s) && s->span.nr > SPAN_TO)
		heap_span_end(heap);
}

int session_span_finish(struct session *s, const char *path)
{
	const struct span_mark *m;

	if (!session_has_span(s))
		return 0;
	while (span_pass_end(&s->span, s->is_damaged))
		session_span_act(s);
	if (session_span_is_over(s))
		return 0;
	m = &s->span.span->marks[s->span.nr];
	if (!s->is_replayed)
		error("%s: --between: %s: this moment has not come%s", s->options->command, m->name,
		      s->span.nr ? " behind the moment before it" : "");
	else if (m->kind == SPAN_AT_TIME)
		error("%s: %s: --between: %s: the recording ends after %s ('end' is its end)",
		      s->options->command, path, m->name,
		      human_duration(s->span.last_ns - s->span.start_ns).text);
	else
		error("%s: %s: --between: %s: no marker of this name%s", s->options->command, path, m->name,
		      s->span.nr ? " behind the moment before it" : "");
	return -ERANGE;
}

const char *session_span_note(struct session *s)
{
	const struct span_course *c = &s->span;
	char at[NR_SPAN_MOMENTS][128];

	for (size_t i = 0; i < NR_SPAN_MOMENTS; i++) {
		struct human time = human_duration(c->times[i] - c->start_ns);

		if (c->span->marks[i].kind == SPAN_AT_NAME)
			snprintf(at[i], sizeof(at[i]), "\"%s\" (at %s)", c->span->marks[i].name, time.text);
		else
			snprintf(at[i], sizeof(at[i]), "%s", time.text);
	}
	snprintf(s->span_note, sizeof(s->span_note),
		 "only blocks allocated from %s to %s are counted; live: those not freed at %s",
		 at[SPAN_FROM], at[SPAN_TO],
		 c->span->marks[SPAN_AT].kind == SPAN_WITH_LAST ? at[SPAN_TO] : at[SPAN_AT]);
	return s->span_note;
}

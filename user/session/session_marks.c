/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Moments with names: ends of a span, entries of the recording, and a list for reports. */
#include <stdio.h>

#include "user/lib/array.h"
#include "user/session/session_fill.h"
#include "user/session/session_private.h"
#include "user/session/session_span.h"

/* When the part of the session is over, marks behind it are kept for a later, longer part. */
static u64 end_of_part(const struct session *s)
{
	return session_span_is_over(s) ? s->span.times[SPAN_AT] : s->stop_ns ? s->stop_ns : UINT64_MAX;
}

static void session_marks_keep_mark(struct session *s, u64 now_ns, const char *text)
{
	struct report_marks *m = &s->marks;
	struct report_mark *mark;

	if (m->nr == REPORT_MAX_MARKS || array_reserve(m->list, m->max, m->nr + 1)) {
		m->nr_left_out++;
		s->nr_late_marks += now_ns > end_of_part(s);
		return;
	}
	mark = &m->list[m->nr++];
	mark->time_ns = now_ns;
	snprintf(mark->name, sizeof(mark->name), "%s", text);
}

void session_pass_mark(struct session *s, u64 now_ns, const char *text)
{
	if (session_has_span(s))
		session_span_go_on(s, now_ns, text);
	if (!session_has_span(s) || session_span_has_begun(s))
		session_marks_keep_mark(s, now_ns, text);
}

struct report_marks session_marks(const struct session *s)
{
	struct report_marks m = s->marks;

	while (m.nr && m.list[m.nr - 1].time_ns > end_of_part(s))
		m.nr--;
	m.nr_left_out -= s->nr_late_marks;
	return m;
}

void session_mark(struct session *s, u64 now_ns, const char *text)
{
	session_pass_mark(s, now_ns, text);
	recorder_mark(s->recorder, now_ns, text);
}

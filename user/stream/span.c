/* SPDX-License-Identifier: GPL-2.0-or-later */
/* --between: parse the text, and notice moments by the times and markers of a recording. */
#include "user/stream/span.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "user/lib/parse.h"

static int span_parse_mark(struct span_mark *m, const char *text, size_t len, const char **why)
{
	*why = "a marker's name has at most 63 bytes";
	if (len >= sizeof(m->name))
		return -EINVAL;
	memcpy(m->name, text, len);
	m->name[len] = '\0';
	*why = "must be two or three of: a time such as 10s or 1m30s, the name of a marker, start, end";
	if (!len)
		return -EINVAL;
	m->kind = SPAN_AT_TIME;
	if (!strcmp(m->name, "start") || !parse_duration(m->name, &m->ns))
		return 0;
	m->kind = strcmp(m->name, "end") ? SPAN_AT_NAME : SPAN_AT_END;
	return 0;
}

int span_parse(struct span *out, const char *text, const char **why)
{
	size_t nr = 0;

	*out = (struct span){ .marks[SPAN_AT].kind = SPAN_WITH_LAST };
	for (const char *s = text; s; nr++) {
		const char *comma = strchr(s, ',');
		size_t len = comma ? (size_t)(comma - s) : strlen(s);

		*why = "takes three moments at most";
		if (nr == NR_SPAN_MOMENTS || span_parse_mark(&out->marks[nr], s, len, why))
			return -EINVAL;
		s = comma ? comma + 1 : NULL;
	}
	*why = "needs two moments: FROM,TO";
	if (nr < 2)
		return -EINVAL;
	*why = "the moments must be in order of time";
	for (size_t i = 1; i < nr; i++) {
		const struct span_mark *m = &out->marks[i];

		if (m[-1].kind == SPAN_AT_END && i == SPAN_TO)
			return -EINVAL;
		if (m->kind == SPAN_AT_TIME && m[-1].kind == SPAN_AT_TIME && m->ns < m[-1].ns)
			return -EINVAL;
	}
	return 0;
}

static bool stream_span_pass(struct span_course *c, u64 time_ns)
{
	c->times[c->nr++] = time_ns;
	return true;
}

bool span_pass(struct span_course *c, u64 now_ns, const char *marker)
{
	const struct span_mark *m = &c->span->marks[c->nr];
	u64 last_ns = c->nr ? c->times[c->nr - 1] : c->start_ns, time_ns;

	if (c->nr == NR_SPAN_MOMENTS)
		return false;
	if (m->kind == SPAN_WITH_LAST)
		return stream_span_pass(c, last_ns);
	if (m->kind == SPAN_AT_TIME) {
		/* A marker before may have come after this time. */
		time_ns = c->start_ns + m->ns < last_ns ? last_ns : c->start_ns + m->ns;
		return now_ns >= time_ns && stream_span_pass(c, time_ns);
	}
	return m->kind == SPAN_AT_NAME && marker && !strcmp(m->name, marker) && stream_span_pass(c, now_ns);
}

bool span_pass_end(struct span_course *c, bool is_early)
{
	if (c->nr == NR_SPAN_MOMENTS)
		return false;
	/* A span that has begun ends where the recording breaks off. */
	if (c->span->marks[c->nr].kind == SPAN_AT_END || (is_early && c->nr))
		return stream_span_pass(c, c->last_ns);
	return span_pass(c, c->last_ns, NULL);
}

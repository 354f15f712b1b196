/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A part of a recording (--between), inside of a session. */
#pragma once

#include "user/stream/span.h"

struct heap;
struct session;

/* Count only @span, which is borrowed. To be called before a record is entered. */
void session_span_set(struct session *s, const struct span *span);
bool session_has_span(const struct session *s);

/* The first moment of the span has passed. */
bool session_span_has_begun(const struct session *s);

/* Later records do not belong to the report. */
bool session_span_is_over(const struct session *s);

/* Time passes to @now_ns, before the record of that time is entered; @marker (or NULL) is set then. */
void session_span_go_on(struct session *s, u64 now_ns, const char *marker);

/*
 * A span from the start ends, and reading halts there. Let it end at the end of @span, which is borrowed. False, and
 * nothing is changed: @span does not begin at the start, or ends before.
 */
bool session_span_extend(struct session *s, const struct span *span);

/* Is @span from the start to one moment? */
bool session_span_is_simple(const struct span *span);

/* @heap belongs to a process that begins now. */
void session_span_new_heap(const struct session *s, struct heap *heap);

/* The file @path, or tracing (NULL), has ended. 0, or -ERANGE, logged: a moment is not in the file. */
int session_span_finish(struct session *s, const char *path) __must_check;

/* The marks up to the end of the span, or of tracing. Their list stays with @s. */
struct report_marks session_marks(const struct session *s);

/* The note for reports that says which blocks are counted; valid as long as @s. */
const char *session_span_note(struct session *s);

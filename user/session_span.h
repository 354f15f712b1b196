/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a session does for --between. */
#pragma once

#include "user/span.h"

struct heap;
struct session;

/* Before anything is entered: @span, borrowed. */
void session_span_set(struct session *s, const struct span *span);
bool session_has_span(const struct session *s);

/* Nothing that comes now belongs to the report. */
bool session_span_is_over(const struct session *s);

/* It is @now_ns, before the record of that time is entered; @marker is set then, or NULL. */
void session_span_go_on(struct session *s, u64 now_ns, const char *marker);

/* @heap is that of a process which begins now. */
void session_span_new_heap(const struct session *s, struct heap *heap);

/* The end of the file @path. 0, or -ERANGE if a moment is not in it, logged. */
int session_span_finish(struct session *s, const char *path) __must_check;

/* What was counted, as a note for reports; valid as long as @s. */
const char *session_span_note(struct session *s);

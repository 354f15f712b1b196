/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Heap events of a session. For user/session/session*.c only. */
#pragma once

#include <stddef.h>

struct event_header;
struct heap_event;
struct process;
struct session;

/* heap_check_own() of the books of @p. */
void session_heap_check_own(const struct session *s, struct process *p);

/* Enter the heap event @rec of @p. 0. */
int session_heap_event(struct session *s, struct process *p, const struct event_header *rec);

/*
 * Enter @nr heap events of one process, and look only once at what decides about them. @ctx is the session, as for
 * struct sink. 0.
 */
int session_heap_events(void *ctx, struct heap_event *evs, size_t nr);

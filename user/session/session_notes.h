/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Inside of a session: markers of the traced programs (include/heaptap.h). */
#pragma once

#include "user/source/record.h"

struct process;
struct session;

/* The markers of a process. */
struct process_notes {
	bool is_paused; /* allocations are not counted: by the program, or from the start (--start-paused) */
	bool is_from_start; /* by --start-paused */
	u64 nr_pauses;	    /* by the program */
	u64 nr_left_out;    /* allocations of that time */
	u64 nr_unread;	    /* marks whose name could not be read */
	struct {
		u32 tid, depth;
	} * disabled; /* owned; threads between __lsan_disable() and __lsan_enable() */
	u32 nr_disabled, max_disabled;
	char text[160]; /* for the report */
};

/* The record @rec of a marker of @p. Returns 0. */
int session_note(struct session *s, struct process *p, const struct event_header *rec);

/* @p, or a new image or child of it, joins: it is paused if tracing begins so. */
void session_note_begin(const struct session *s, struct process *p);

/* Is the heap event @ev left out, because the program of @p has paused counting? Counts it. */
bool session_note_leaves_out(struct process *p, const struct heap_event *ev);

/* The heap event @ev was entered: does the program say that its block is no leak? */
void session_note_heap(struct session *s, struct process *p, const struct heap_event *ev);

/*
 * @p has executed a program. Its latest verdict before execve() is its last one, unless its only thread has called
 * allocators since: that exec has failed, and nobody saw the call of this one.
 */
void session_note_exec(struct process *p);

/* The sentence about pauses of @p, valid as long as @p; NULL = there was none. */
const char *session_note_text(struct process *p);

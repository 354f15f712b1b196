/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Inside of a session: changes while it runs, and the events that were not seen because of them. */
#pragma once

#include "user/report/report.h"
#include "user/source/source_told.h"

struct process;
struct session;

struct session_tuned {
	struct tuning now;
	u64 nr_pauses, paused_ns; /* of pauses that are over */
	u64 pause_ns;		  /* when the present pause began; 0 = there is no pause */
	u32 window;		  /* session_set_window() */
	u64 first_window_ns;
};

struct process_tuned {
	u64 nr_left_out; /* allocations, by the filter */
	bool has_unseen; /* there may be live blocks whose allocation was not seen */
	char notes[3][320];
};

/* @p joins: pause and filter it like the other processes. */
void session_tune_process(struct session *s, struct process *p);

/* Is the heap event @ev of @p to be counted? */
bool session_takes(const struct session *s, struct process *p, const struct heap_event *ev);

/* The window of which a report at @now_ns is. */
struct report_window session_window(const struct session *s, u64 now_ns);

/* Notes on @p for the report at @now_ns: up to three. Returns how many. */
size_t session_note_tuning(const struct session *s, struct process *p, u64 now_ns, const char **notes);

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Inside of a session: what is changed while it goes on, and what that leaves unknown. */
#pragma once

#include "user/source_told.h"

struct process;
struct session;

struct session_tuned {
	struct tuning now;
	u64 nr_pauses, paused_ns; /* that are over */
	u64 pause_ns;		  /* when this one began; 0 = none */
};

struct process_tuned {
	u64 nr_left_out; /* allocations, by the filter */
	bool has_unseen; /* blocks that nobody saw allocated may be alive */
	char notes[2][160];
};

/* A process joins: it is treated as the others are. */
void session_tune_process(struct session *s, struct process *p);

/* Is the heap event @ev of @p for the books? */
bool session_takes(const struct session *s, struct process *p, const struct heap_event *ev);

/* What a report must say of @p, in up to two notes. How many. */
size_t session_note_tuning(const struct session *s, struct process *p, const char **notes);

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The one table of the records of bpf/event.h: session and serve have one function for each role. */
#pragma once

#include "bpf/event.h"

/* The role of a record for its receiver. */
enum record_role {
	RECORD_NONE,  /* of no known kind, or too short */
	RECORD_HEAP,  /* struct heap_event: a step of a call */
	RECORD_STACK, /* struct stack_event */
	RECORD_EXEC,  /* struct process_event, this one and the others */
	RECORD_FORK,
	RECORD_EXIT,
	RECORD_MAPS,
	RECORD_LOSSES,
	RECORD_NOTE, /* struct note_event */
	NR_RECORD_ROLES
};

/* One kind of record. For record_role() and record_time() only. */
struct record_kind {
	enum record_role role;
	size_t min_len; /* bytes */
};

extern const struct record_kind record_kinds[NR_EVENT_KINDS];

/* The role of @rec, which is @len bytes long. */
static inline enum record_role record_role(const struct event_header *rec, size_t len)
{
	if (len < sizeof(*rec) || rec->kind >= NR_EVENT_KINDS || len < record_kinds[rec->kind].min_len)
		return RECORD_NONE;
	return record_kinds[rec->kind].role;
}

/* When it happened; not of a stack, which has no time. */
u64 record_time(const struct event_header *rec);

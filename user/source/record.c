/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The one table of the records of bpf/event.h. */
#include "user/source/record.h"

const struct record_kind record_kinds[NR_EVENT_KINDS] = {
	[EVENT_ALLOC] = { RECORD_HEAP, sizeof(struct heap_event) },
	[EVENT_FREE] = { RECORD_HEAP, sizeof(struct heap_event) },
	[EVENT_REALLOC_BEGIN] = { RECORD_HEAP, sizeof(struct heap_event) },
	[EVENT_REALLOC_END] = { RECORD_HEAP, sizeof(struct heap_event) },
	[EVENT_STACK] = { RECORD_STACK, offsetof(struct stack_event, ips) },
	[EVENT_EXEC] = { RECORD_EXEC, sizeof(struct process_event) },
	[EVENT_FORK] = { RECORD_FORK, sizeof(struct process_event) },
	[EVENT_EXIT] = { RECORD_EXIT, sizeof(struct process_event) },
	[EVENT_MAPS] = { RECORD_MAPS, sizeof(struct process_event) },
	[EVENT_LOSSES] = { RECORD_LOSSES, sizeof(struct process_event) },
	[EVENT_NOTE] = { RECORD_NOTE, sizeof(struct note_event) },
};

u64 record_time(const struct event_header *rec)
{
	return record_kinds[rec->kind].role == RECORD_HEAP ? ((const struct heap_event *)rec)->time_ns
							   : ((const struct process_event *)rec)->time_ns;
}

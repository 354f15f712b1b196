/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A session that forwards: with recorder_options.sink all that it learns goes on to a client, which has the books. Its
 * own books stay empty. Events for which there is no room, or no client, count as lost.
 */
#pragma once

#include "user/source/losses.h"

struct event_header;
struct heap_event;
struct note_event;
struct process;
struct session;
struct source;

/* Most processes at a time: more are not followed. */
enum { FORWARD_MAX_PROCESSES = 4096 };

/* Heap events of one process that a client had received when it lost its connection. */
struct forward_had {
	u32 pid;
	u64 start_time; /* the process, not a later one of this PID */
	u64 allocs, frees;
};

/* All that it had received of the trace. */
struct forward_received {
	u64 nr_ends; /* STREAM_EXIT; these processes are not in @had */
	u32 nr_had;
	struct forward_had had[FORWARD_MAX_PROCESSES];
};

/* The random number of this trace. A client that knows it may continue the trace. */
u64 session_forward_id(const struct session *s);

/*
 * A client has come: begin a new stream with all processes. @had: what it has received of the streams before; NULL = it
 * is a new one. 0 or -EIO. And: it has gone.
 */
int session_forward_connect(struct session *s, const struct forward_received *had) __must_check;

/* Was there no memory to leave frees out for --thin? Then all are sent. */
bool session_forward_lacks_memory(const struct session *s);
void session_forward_disconnect(struct session *s);

/* Enter the records that have arrived, write what is to be said at intervals. 0; -EIO: the stream is broken. */
int session_forward_poll(struct session *s) __must_check;

/* Give all that is written to the sink. 0; -EIO: the stream is broken. */
int session_forward_flush(struct session *s) __must_check;

/* The target of the process @pid; NULL if it is not traced, or has ended. Borrowed until the next poll. */
const struct target *session_forward_target(struct session *s, pid_t pid);

/* The source, borrowed. */
const struct source_ops *session_source(const struct session *s, struct source **source);

/* For user/session/session*.c only. */

/* The end of a process, which a client that was away must be told. */
struct forwarded_end {
	u32 pid, parent;
	u64 start_time;
	u64 number; /* of its STREAM_EXIT, from 1 on, over all streams; 0 = it was not written */
	int status;
	struct losses losses; /* in all */
	u64 allocs, frees;    /* that were sent */
};

/* The part of a session that forwards. Zeros at its start. */
struct forwarding {
	struct forwarded_end *ends; /* owned */
	size_t nr_ends;
	u64 nr_told_ends; /* STREAM_EXIT that were written, over all streams */
	u64 flushed_ns;
	bool misses_stacks; /* some stacks were not sent */
	u8 *sent; /* owned; bits of addresses whose blocks may have been sent; NULL = all releases are sent */
	struct lending *lending; /* owned; the process whose blocks a client sends, NULL = none */
};

/* Records of @p that were taken. Return 0. */
int session_forward_event(struct session *s, struct process *p, const struct heap_event *ev);
int session_forward_stack(struct session *s, struct process *p, const struct event_header *rec, size_t len);
int session_forward_note(struct session *s, struct process *p, const struct note_event *ev);

/* The end of @p was written. */
void session_forward_end(struct session *s, const struct process *p, int status);

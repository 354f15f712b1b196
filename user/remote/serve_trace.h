/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A trace without a heap: records of a source go into a stream to the client, or are counted as lost. */
#pragma once

#include "user/source/source.h"
#include "user/source/tuning.h"
#include "user/remote/wire.h"

struct serve_trace;

struct serve_trace_options {
	const struct source_ops *ops;
	struct source *source;	       /* borrowed; outlives the trace */
	const struct alloc_table *fns; /* borrowed; its records name rows of this table */
	struct tuning tuning;	       /* at the start */
	const char *producer;	       /* "heaptap 0.1.0" */
};

/* Most processes at a time: more are not followed. */
enum { SERVE_MAX_PROCESSES = 4096 };

/* Heap events of one process that a client had received when it lost its connection. */
struct serve_had {
	u32 pid;
	u64 start_time; /* the process, not a later one of this PID */
	u64 allocs, frees;
};

/* All that it had received of the trace. */
struct serve_received {
	u64 nr_ends; /* STREAM_EXIT; these processes are not in @had */
	u32 nr_had;
	struct serve_had had[SERVE_MAX_PROCESSES];
};

int serve_trace_new(struct serve_trace **out, const struct serve_trace_options *o) __must_check;
/* Does not free the source. */
void serve_trace_free(struct serve_trace *t);

/* Trace @pid. 0 or -errno, logged. */
int serve_trace_attach(struct serve_trace *t, pid_t pid, bool is_started) __must_check;

/* Read the mappings of @pid again. */
void serve_trace_update(struct serve_trace *t, pid_t pid);
/* @pid, a new child, is stopped before its first instruction. */
void serve_trace_born(struct serve_trace *t, pid_t pid);

/*
 * Begin a new stream on @out (borrowed) with all processes. NULL: there is no client, and all events are lost. @had:
 * what the client has received of the streams before; NULL = it is a new one. 0 or -errno.
 */
int serve_trace_connect(struct serve_trace *t, struct wire_out *out,
			const struct serve_received *had) __must_check;

/* Read the records of the source, without waiting. 0, or -errno: the stream is broken. */
int serve_trace_poll(struct serve_trace *t) __must_check;

/* Put all records into the queue. 0 or -errno. */
int serve_trace_flush(struct serve_trace *t) __must_check;

/* The number of processes that are still traced. Notices processes that have ended. */
size_t serve_trace_running(struct serve_trace *t);

/* @pid has ended; @status is that of wait(2). */
void serve_trace_ended(struct serve_trace *t, pid_t pid, int status);

/* Trace no more calls of @pid. Used while it is stopped for its last scan. */
void serve_trace_pause(struct serve_trace *t, pid_t pid);

/*
 * Change pause, depth and filter. Earlier events are in the queue on return. 0; -EOPNOTSUPP: the source cannot change
 * them, or tracing began without stacks; or -errno. After an error nothing has changed.
 */
int serve_trace_tune(struct serve_trace *t, const struct tuning *now) __must_check;

/* Remove all probes; send the last records and the end of the stream. 0 or -errno. A second call does nothing. */
int serve_trace_stop(struct serve_trace *t) __must_check;

/* Random number of this trace. A client that knows it may continue the trace. */
u64 serve_trace_id(const struct serve_trace *t);

/* PID of the process with index @i; -1 if it has ended, 0 behind the last one. */
pid_t serve_trace_pid(const struct serve_trace *t, size_t i);

/* The target with @pid; NULL if it is not traced, or has ended. */
const struct target *serve_trace_target(const struct serve_trace *t, pid_t pid);

/* True if no target has an allocator. */
bool serve_trace_has_no_allocator(const struct serve_trace *t);

/* Call @watch for each heap event from now on; NULL = call nothing. */
void serve_trace_watch(struct serve_trace *t, void (*watch)(void *ctx, const struct heap_event *ev),
		       void *ctx);

/* Losses of @pid until now, of the source and of the queue. */
struct losses serve_trace_losses(struct serve_trace *t, pid_t pid);

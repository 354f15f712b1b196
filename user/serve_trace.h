/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A session without books: what a source says of its targets goes into a stream, or is counted as lost. */
#pragma once

#include "user/source.h"
#include "user/tuning.h"
#include "user/wire.h"

struct serve_trace;

struct serve_trace_options {
	const struct source_ops *ops;
	struct source *source; /* borrowed; outlives the trace */
	struct tuning tuning;  /* at first */
	const char *producer;  /* "heaptap 0.1.0" */
};

/* What a client that comes back has had: heap events of one process. */
struct serve_had {
	u32 pid;
	u64 allocs, frees;
};

int serve_trace_new(struct serve_trace **out, const struct serve_trace_options *o) __must_check;
/* The source is not touched. */
void serve_trace_free(struct serve_trace *t);

/* Trace @pid: 0 or -errno, logged, as session_attach(). */
int serve_trace_attach(struct serve_trace *t, pid_t pid, bool is_started) __must_check;

/* Its mappings may have changed. */
void serve_trace_update(struct serve_trace *t, pid_t pid);

/*
 * A new stream begins on @out (borrowed; NULL = nobody listens: what comes is counted as lost), with all
 * processes. @had, @nr_had: what the client of the stream before it got. 0 or -errno.
 */
int serve_trace_connect(struct serve_trace *t, struct wire_out *out, const struct serve_had *had,
			size_t nr_had) __must_check;

/* Take in what the source has, without waiting. 0, or -errno: the stream cannot go on. */
int serve_trace_poll(struct serve_trace *t) __must_check;

/* Put everything into the queue. 0 or -errno. */
int serve_trace_flush(struct serve_trace *t) __must_check;

/* Processes that are still traced. Notices ends. */
size_t serve_trace_running(struct serve_trace *t);
/* A process's end as wait(2) gives it. */
void serve_trace_ended(struct serve_trace *t, pid_t pid, int status);

/* See no more calls of the traced processes: before the end, at a moment when they stand. */
void serve_trace_pause(struct serve_trace *t);

/*
 * Go on as @now says; what was seen before is in the queue when it returns. 0; -EOPNOTSUPP: the source cannot, or has
 * begun without stacks; or -errno. All is as before then.
 */
int serve_trace_tune(struct serve_trace *t, const struct tuning *now) __must_check;

/* Take all probes out, send what is left and the stream's end. 0 or -errno. Twice is harmless. */
int serve_trace_stop(struct serve_trace *t) __must_check;

/* Number of the stream's life: a client that knows it may come back. */
u64 serve_trace_id(const struct serve_trace *t);

/* The processes, by number from 0: pid, 0 at the end; those that are over are left out by pid -1. */
pid_t serve_trace_pid(const struct serve_trace *t, size_t i);

/* A target that is traced by @pid, NULL if it is not or is over. */
const struct target *serve_trace_target(const struct serve_trace *t, pid_t pid);

/* True if none of its targets has an allocator. */
bool serve_trace_has_no_allocator(const struct serve_trace *t);

/* Tell @watch about each heap event from now on; NULL = nobody. */
void serve_trace_watch(struct serve_trace *t, void (*watch)(void *ctx, const struct heap_event *ev),
		       void *ctx);

/* Losses of @pid so far, the queue's included. */
struct losses serve_trace_losses(struct serve_trace *t, pid_t pid);

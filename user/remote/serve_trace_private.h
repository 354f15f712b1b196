/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A trace of the server as data, for user/remote/serve_trace.c and user/remote/serve_children.c only. */
#pragma once

#include "user/remote/serve_trace.h"
#include "user/stream/stream_format.h"
#include "user/stream/stream_target.h"

/* A process that is traced for the client. */
struct served {
	struct target *target; /* owned */
	u32 parent;	       /* PID; 0 = it was attached to, or started */
	bool is_over;
	bool is_dead;		     /* serve_trace_running() has found that it has ended */
	bool is_copy;		     /* of its parent: it has executed nothing */
	bool is_gone;		     /* replaced before serve looked: nothing can be read of it */
	bool is_paused;		     /* by serve_trace_pause() */
	struct losses dropped;	     /* events that could not be sent */
	u32 nr_unprobed;	     /* files for whose probes there was no room */
	struct losses told;	     /* in the last STREAM_LOSSES */
	u64 allocs, frees;	     /* events that were sent */
	u64 left_out, told_left_out; /* allocations that the filter leaves out; in the last WIRE_LEFT_OUT */
};

/* The end of a process, which a client that was away must be told. */
struct served_end {
	u32 pid, parent;
	u64 start_time;
	u64 number; /* of its STREAM_EXIT, from 1 on, over all streams; 0 = it was not written */
	int status;
	struct losses losses; /* in all */
	u64 allocs, frees;    /* that were sent */
};

struct serve_trace {
	struct serve_trace_options options;
	struct module_table *modules; /* owned */
	struct stream_writer *writer; /* owned */
	struct wire_out *out;	      /* borrowed; NULL = there is no client */
	int err;		      /* of the stream */
	u64 id;
	struct stream_modules introduced;
	struct served *list; /* owned */
	size_t nr;
	struct served_end *ends; /* owned */
	size_t nr_ends;
	u64 nr_told_ends; /* STREAM_EXIT that were written, over all streams */
	u64 start_ns, flush_ns;
	bool is_stopped;
	struct tuning tuning;
	bool misses_stacks; /* some stacks were not sent */
	void (*watch)(void *ctx, const struct heap_event *ev);
	void *watch_ctx;
};

/* The process @pid that has not ended; NULL if there is none. */
struct served *serve_find(const struct serve_trace *t, u32 pid);

/* Add a process, which owns @target from then on. *@out is valid until the next call. 0, -E2BIG or -ENOMEM. */
int serve_add(struct serve_trace *t, struct target *target, struct served **out) __must_check;

/* Write a record, or an event, if there is a client. */
void serve_tell(struct serve_trace *t, enum stream_kind kind, const void *rec);
void serve_tell_event(struct serve_trace *t, const struct event_header *rec, size_t len);

/* Write the identity of @p and its mappings. */
void serve_tell_process(struct serve_trace *t, struct served *p);

/* @nr of the files that @p has mapped have no probes, because there is no room for more. */
void serve_note_unprobed(struct served *p, int nr);

/* Write all losses of @p, if they have changed since. */
void serve_tell_losses(struct serve_trace *t, struct served *p, const struct losses *l);

/* Send how many allocations of @p the filter has left out. */
void serve_tell_left_out(const struct serve_trace *t, struct served *p);

/* Total losses since tracing began, of the source and of the queue. */
struct losses serve_losses_of(const struct serve_trace *t, const struct served *p);

/* Records of the life of a process. */
void serve_on_fork(struct serve_trace *t, struct served *p, const struct event_header *rec, size_t len);
void serve_on_exec(struct serve_trace *t, struct served *p, const struct event_header *rec, size_t len);
void serve_on_exit(struct serve_trace *t, struct served *p, const struct event_header *rec, size_t len);

/* @p has ended, as far as is known by @status: tell the client, and forget the process at the next serve_sweep(). */
void serve_end(struct serve_trace *t, struct served *p, u64 time_ns, int status);

/* Free what belonged to processes that have ended. Pointers to processes are not valid any more. */
void serve_sweep(struct serve_trace *t);

/*
 * A client is back, that has received @had: tell it about all processes that run, about the ends that it has missed,
 * and count what it will never see. @had NULL: it is a new client.
 */
void serve_tell_all_again(struct serve_trace *t, const struct serve_received *had);

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Turn the stream of a connection into records: processes, mappings and events of another machine. */
#pragma once

#include "user/session/session_forward.h"
#include "user/source/source.h"
#include "user/stream/stream_read.h"

struct remote_stream;

/*
 * Modules go into @modules, whose paths are those of another machine (module_table_set_remote()), and functions
 * into @fns. The caller owns *@out. 0 or -ENOMEM. Memory is bounded, whatever bytes come: 4,096 processes at a
 * time with 65,536 mappings each.
 */
int remote_stream_new(struct remote_stream **out, struct module_table *modules, struct alloc_table *fns,
		      const struct stream_codec *codec) __must_check;
void remote_stream_free(struct remote_stream *s);

/*
 * Begin a new stream about the same processes; its numbers are its own. @is_continued: the stream counts events that
 * were missed as losses. Otherwise their number is not known: one more loss of an unknown kind, and all blocks unsure.
 */
void remote_stream_restart(struct remote_stream *s, bool is_continued);

/*
 * Read bytes. Records go to @sink; EVENT_MAPS says that mappings or allocators of a process have changed, EVENT_LOSSES
 * that its losses have. Returns like stream_feed(); remote_stream_why() has the reason of an error.
 */
int remote_stream_feed(struct remote_stream *s, const void *data, size_t len,
		       const struct sink *sink) __must_check;
const char *remote_stream_why(const struct remote_stream *s);

/*
 * A new target for @pid, with mappings; the caller owns it: target_free(). -ESRCH: the stream has not named @pid;
 * -ENOMEM; -E2BIG: the stream has named more programs (about 16,000) than a real server would.
 */
int remote_stream_target(struct remote_stream *s, pid_t pid, struct target **out) __must_check;

/* Update mappings and allocators of a target from remote_stream_target(). 1 = mappings changed, 0 or -errno. */
int remote_stream_update(const struct remote_stream *s, struct target *t) __must_check;

struct losses remote_stream_losses(const struct remote_stream *s, pid_t pid);

/* The first record of the stream; zeros until it comes. */
struct remote_stream_hello {
	u64 id, mono_ns, start_ns, sample_bytes;
	char backend[32];
};
const struct remote_stream_hello *remote_stream_hello(const struct remote_stream *s);

/* The latest time of an event, by the clock of the server; 0 = none yet. */
u64 remote_stream_last_ns(const struct remote_stream *s);

/* The end of @pid was taken by the session, which asks for nothing more of it. */
void remote_stream_forget(struct remote_stream *s, pid_t pid);

/* Tell a server that goes on with the trace how much of it has come. */
void remote_stream_received(const struct remote_stream *s, struct forward_received *out);

/* Has no process been named yet? */
bool remote_stream_is_empty(const struct remote_stream *s);

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The stream of a connection as a source's records: processes, mappings and events of another machine, as they come. */
#pragma once

#include "user/source.h"
#include "user/stream_read.h"

struct remote_stream;

/*
 * Modules go into @modules, which is told that its paths are not this machine's (module_table_set_remote()). *@out is
 * owned by the caller. 0 or -ENOMEM. Whatever comes in, memory is bounded: 1024 processes, 65536 mappings each.
 */
int remote_stream_new(struct remote_stream **out, struct module_table *modules,
		      const struct stream_codec *codec) __must_check;
void remote_stream_free(struct remote_stream *s);

/*
 * A new stream about the same processes begins: its numbers are its own. @is_continued: what was missed is in its
 * losses; else that is not known: one more loss of an unknown kind, and all blocks unsure.
 */
void remote_stream_restart(struct remote_stream *s, bool is_continued);

/*
 * Take bytes in; their records go to @sink, with EVENT_MAPS when mappings or allocators of a process are known
 * anew and EVENT_LOSSES when its losses are. As stream_feed(); remote_stream_why() says what was wrong.
 */
int remote_stream_feed(struct remote_stream *s, const void *data, size_t len,
		       const struct sink *sink) __must_check;
const char *remote_stream_why(const struct remote_stream *s);
/* Its last record has come. */
bool remote_stream_is_over(const struct remote_stream *s);

/*
 * A copy of what is known of @pid, with its mappings; target_free() it. -ESRCH for one that was not named; -ENOMEM;
 * -E2BIG: so many programs were told of (some 8,000) that the others are not believed.
 */
int remote_stream_target(struct remote_stream *s, pid_t pid, struct target **out) __must_check;

/* The same for mappings and allocators alone, into a target that was made so. 1 = they changed, 0 or -errno. */
int remote_stream_update(const struct remote_stream *s, struct target *t) __must_check;

struct losses remote_stream_losses(const struct remote_stream *s, pid_t pid);

/* How the stream began; strings are "" until then. */
struct remote_stream_hello {
	u64 id, mono_ns, start_ns;
	char backend[32];
};
const struct remote_stream_hello *remote_stream_hello(const struct remote_stream *s);

/* The latest time of its clock that an event of this stream had; 0 = none yet. */
u64 remote_stream_last_ns(const struct remote_stream *s);

/* Heap events of each process since the start, as losses count them, for its i-th process: false at the end. */
bool remote_stream_count(const struct remote_stream *s, size_t i, pid_t *pid, u64 *allocs, u64 *frees);

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A stream as a source's records: processes, mappings and events of another machine or another time. */
#pragma once

#include "user/source.h"
#include "user/stream_read.h"

struct stream_source;

/*
 * Modules go into @modules, which is told that its paths are not this machine's (module_table_set_remote()). *@out is
 * owned by the caller. 0 or -ENOMEM. Whatever comes in, memory is bounded: 1024 processes, 65536 mappings each.
 */
int stream_source_new(struct stream_source **out, struct module_table *modules,
		      const struct stream_codec *codec) __must_check;
void stream_source_free(struct stream_source *s);

/*
 * A new stream about the same processes begins: its numbers are its own. @is_continued: what was missed is in its
 * losses; else that is not known: one more loss of an unknown kind, and all blocks unsure.
 */
void stream_source_restart(struct stream_source *s, bool is_continued);

/*
 * Take bytes in; their records go to @sink, with EVENT_MAPS when mappings or allocators of a process are known
 * anew and EVENT_LOSSES when its losses are. As stream_feed(); stream_source_why() says what was wrong.
 */
int stream_source_feed(struct stream_source *s, const void *data, size_t len,
		       const struct sink *sink) __must_check;
const char *stream_source_why(const struct stream_source *s);
/* Its last record has come. */
bool stream_source_is_over(const struct stream_source *s);

/* A copy of what is known of @pid, with its mappings; target_free() it. -ESRCH for one that was not named; -ENOMEM. */
int stream_source_target(const struct stream_source *s, pid_t pid, struct target **out) __must_check;

/* The same for mappings and allocators alone, into a target that was made so. 1 = they changed, 0 or -errno. */
int stream_source_update(const struct stream_source *s, struct target *t) __must_check;

struct losses stream_source_losses(const struct stream_source *s, pid_t pid);

/* How the stream began; strings are "" until then. */
struct stream_source_hello {
	u64 id, mono_ns, start_ns;
	char backend[32];
};
const struct stream_source_hello *stream_source_hello(const struct stream_source *s);

/* The latest time of its clock that an event of this stream had; 0 = none yet. */
u64 stream_source_last_ns(const struct stream_source *s);

/* Heap events of each process since the start, as losses count them, for its i-th process: false at the end. */
bool stream_source_count(const struct stream_source *s, size_t i, pid_t *pid, u64 *allocs, u64 *frees);

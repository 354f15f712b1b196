/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Memory of a process in pieces. Threads of its own read it, so that a read that hangs stops no other work. */
#pragma once

#include "user/scan/snapshot.h"

struct memory_stream;

struct memory_options {
	pid_t tid; /* whose memory: a thread of the process, or a copy of it */
	u64 deadline_ns;
	const bool *is_kept; /* borrowed during the call; by mapping. NULL = none */
	/* The memory of kept mappings, which moves into the stream. NULL: read kept mappings, and no other. */
	struct page_copy *kept;
};

/*
 * Open the memory of the process of @s, whose mappings are known already. Read it once. *@out is owned by the
 * caller: memory_stream_free(). Returns 0, -ESRCH, -EPERM, -ENOMEM or -errno.
 */
int memory_stream_new(struct memory_stream **out, const struct snapshot *s,
		      const struct memory_options *options) __must_check;

/* See the functions of snapshot_ops with these names. */
int memory_stream_read(struct memory_stream *m, const struct snapshot_visitor *visitor) __must_check;
int memory_stream_peek(struct memory_stream *m, taddr_t addr, void *buf, size_t len);
/* @is_own: all of it is anonymous private memory. */
int memory_stream_fetch(struct memory_stream *m, bool is_own, taddr_t addr, void *buf, size_t len);
taddr_t memory_stream_next(const struct memory_stream *m, taddr_t at, taddr_t end);

/* Add to read_bytes and skipped_bytes of @s. */
void memory_stream_count(struct memory_stream *m, struct snapshot *s);

/* Free @m. Never blocks: a thread that is still inside a read frees the rest later. NULL is fine. */
void memory_stream_free(struct memory_stream *m);

/* May @map be the memory of a device? Reading that may have effects, or hang. */
bool memory_is_device(const struct snapshot_map *map);

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Memory of a process as a stream of chunks, read ahead by a thread, so that a read that hangs harms nobody. */
#pragma once

#include "user/snapshot.h"

struct memory_stream;

/*
 * Open the memory of the process of @s, whose maps are read already. Reading begins with the first next().
 * Returns 0, -ESRCH, -EPERM, -ENOMEM or -errno.
 */
int memory_stream_new(struct memory_stream **out, const struct snapshot *s, u64 deadline_ns) __must_check;

/* As snapshot_ops.next and .peek. */
int memory_stream_next(struct memory_stream *m, struct snapshot_chunk *chunk);
int memory_stream_peek(struct memory_stream *m, taddr_t addr, void *buf, size_t len);

/* Bytes not read, per reason, so far. */
void memory_stream_skipped(struct memory_stream *m, u64 bytes[NR_SNAPSHOT_SKIPS]);

/* Never waits: a thread still inside a read releases the rest itself. NULL is nothing. */
void memory_stream_free(struct memory_stream *m);

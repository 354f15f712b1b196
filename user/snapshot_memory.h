/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Memory of a process in pieces, read by threads of their own, so that a read that hangs harms nobody. */
#pragma once

#include "user/snapshot.h"

struct memory_stream;

/*
 * Open the memory of the process of @s, whose maps are read already. It is read once.
 * Returns 0, -ESRCH, -EPERM, -ENOMEM or -errno.
 */
int memory_stream_new(struct memory_stream **out, const struct snapshot *s, u64 deadline_ns) __must_check;

/* As snapshot_ops.read and .peek. */
int memory_stream_read(struct memory_stream *m, const struct snapshot_visitor *visitor) __must_check;
int memory_stream_peek(struct memory_stream *m, taddr_t addr, void *buf, size_t len);

/* Fill in what was read so far and what was not. */
void memory_stream_count(struct memory_stream *m, struct snapshot *s);

/* Never waits: a thread still inside a read releases the rest itself. NULL is nothing. */
void memory_stream_free(struct memory_stream *m);

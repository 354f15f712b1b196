/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Records from the tracer to who keeps the books: a ring in memory shared by fork, one writer, one reader. */
#pragma once

#include <sys/types.h>

#include "user/lib/types.h"

enum { RING_MAX_RECORD = 2048 };

struct ring;

/* @bytes of room, made a power of two; to be made before the fork. -ENOMEM, or -errno. */
int ring_new(struct ring **out, u64 bytes) __must_check;
/* Of this process; the other one's stays. */
void ring_free(struct ring *r);

/* Never waits. False if there is no room. A wakeup when an eighth of the room is full; with @is_urgent always. */
bool ring_put(struct ring *r, const void *rec, size_t len, bool is_urgent);

/* Wake the reader, for something that is no record. */
void ring_wake(struct ring *r);

/* Readable when it is worth to look. */
int ring_fd(const struct ring *r);

/*
 * Take the next record: its length, 0 if there is none, -EPROTO if what is there is none. @buf, of RING_MAX_RECORD
 * bytes, is aligned to 8.
 */
ssize_t ring_take(struct ring *r, void *buf);

/* Take back the wakeups so far; before the records are taken. */
void ring_quiet(struct ring *r);

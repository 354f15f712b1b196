/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Records from the guardian to heaptap: a ring in memory that is shared by fork, with one writer and one reader. */
#pragma once

#include "user/lib/types.h"

enum { RING_MAX_RECORD = 2048 };

struct ring;

/* @bytes of room, made a power of two; to be made before the fork. -ENOMEM, or -errno. */
int ring_new(struct ring **out, u64 bytes) __must_check;
/* Frees what this process has of it. The other process keeps its own. */
void ring_free(struct ring *r);

/* Never waits. False if there is no room. Wakes the reader when an eighth of the room is full, or if @is_urgent. */
bool ring_put(struct ring *r, const void *rec, size_t len, bool is_urgent);

/* Wake the reader, for something that is no record. */
void ring_wake(struct ring *r);

/* Readable when the reader was woken. */
int ring_fd(const struct ring *r);

/* In this process, that descriptor has the number @fd now. */
void ring_set_fd(struct ring *r, int fd);

/* The position behind the last record that is there now. */
size_t ring_end(const struct ring *r);

/*
 * Take the next record before position @end. Returns its length, 0 if there is none, or -EPROTO if the ring is damaged.
 * A reader that goes on until the ring is empty is kept by a writer that is faster: let it ask for the end before.
 * @buf has RING_MAX_RECORD bytes and is aligned to 8.
 */
ssize_t ring_take(struct ring *r, size_t end, void *buf);

/* Take back all wakeups. To be called before the records are taken. */
void ring_quiet(struct ring *r);

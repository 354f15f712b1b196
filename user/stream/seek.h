/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Seek points of a recording: where a reader can begin, because the state of all processes is written there. */
#pragma once

#include "user/stream/stream_write.h"

struct span;

enum { SEEK_MAX_MARKS = 256, SEEK_NAME_LEN = 64 };

/* A marker that was set before a seek point. */
struct seek_mark {
	u64 time_ns;
	char name[SEEK_NAME_LEN];
};

/* The chunk behind a state. */
struct seek_head {
	struct stream_cut cut;
	u64 time_ns;  /* CLOCK_MONOTONIC */
	u64 start_ns; /* when tracing of the first process of this file began */
	bool has_all; /* each marker before is among the marks */
	u32 nr_marks;
	struct seek_mark marks[SEEK_MAX_MARKS];
};

enum { SEEK_MAX_BYTES = 64 + SEEK_MAX_MARKS * (SEEK_NAME_LEN + 12) };

/* Is a seek point with @nr_blocks live blocks worth its bytes and its time, @bytes after the last one? */
bool seek_is_worth(u64 bytes, u64 nr_blocks);

/* Write @head at @out, which has room for SEEK_MAX_BYTES. Returns the number of bytes. */
size_t seek_put(u8 *out, const struct seek_head *head);

/* Read @len bytes. False if they are no seek point. */
bool seek_get(struct seek_head *out, const u8 *data, size_t len) __must_check;

/* A seek point in a file. */
struct seek_point {
	struct stream_cut cut;
	u64 start_ns;
	u64 state;  /* byte where the chunks of its state begin */
	u64 offset; /* byte of the first chunk behind it */
	u64 number; /* of that chunk */
};

/*
 * The last seek point of the file @fd that lies before the beginning of @span. Looks at headers of chunks and at seek
 * points only, and trusts neither. False if there is none.
 */
bool seek_find(int fd, const struct span *span, struct seek_point *out) __must_check;

/*
 * Give the bytes of the stream that is the state at @p to @feed, until it returns an error. 0; that error; -EBADMSG:
 * a chunk is damaged; -ENOMEM; or -errno of a read.
 */
int seek_read_state(int fd, const struct seek_point *p, int (*feed)(void *ctx, const void *data, size_t len),
		    void *ctx) __must_check;

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Turn a list of events in words into a recording: text comes in, in any portions, the bytes of a stream go out. */
#pragma once

#include "user/lib/types.h"

struct event_list_reader;

/* Takes the bytes of the stream, in whole chunks. 0 or -errno. */
struct event_list_sink {
	void *ctx;
	int (*write)(void *ctx, const void *data, size_t len);
};

/* @sink is copied. The caller owns *@out. 0 or -ENOMEM. */
int event_list_reader_new(struct event_list_reader **out, const struct event_list_sink *sink) __must_check;
void event_list_reader_free(struct event_list_reader *r);

/*
 * Read @len more bytes; each whole line of them is written when this function returns. 0; -EINVAL: a bad line, those
 * before it are written; -ENOMEM; or what the sink gives. All later calls return the error again.
 */
int event_list_feed(struct event_list_reader *r, const char *data, size_t len) __must_check;

/* There are no more bytes: a last line needs no end. Write the end of the stream. 0 or as event_list_feed(). */
int event_list_end(struct event_list_reader *r) __must_check;

/* The number of the line at hand; valid as long as @r is. */
const u64 *event_list_line(const struct event_list_reader *r);

/* One line without full stop about the last error: "line 3: 'x' is not a number". "" if the error is the sink's. */
const char *event_list_why(const struct event_list_reader *r);

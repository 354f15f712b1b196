/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Read a list of events in words: bytes come in, in any portions, the records of a recording go out. */
#pragma once

#include "user/stream/stream_read.h"

struct event_list_reader;

/*
 * @handler is copied, and gets records as from a stream, but STREAM_HELLO only for sample_bytes. The caller owns *@out.
 * 0 or -ENOMEM.
 */
int event_list_reader_new(struct event_list_reader **out, const struct stream_handler *handler) __must_check;
void event_list_reader_free(struct event_list_reader *r);

/*
 * Read @len more bytes, and call the handler for each whole line. 0; -EINVAL: a bad line; -ENOMEM; or what the handler
 * gives. event_list_why() then has the reason, and all later calls return the error again.
 */
int event_list_feed(struct event_list_reader *r, const char *data, size_t len) __must_check;

/* There are no more bytes: a last line needs no end. 0 or as event_list_feed(). */
int event_list_end(struct event_list_reader *r) __must_check;

/* The number of the line at hand. */
u64 event_list_lines(const struct event_list_reader *r);

/* One line without full stop about the last error: "line 3: 'x' is not a number". */
const char *event_list_why(const struct event_list_reader *r);

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Read a stream: bytes come in, in any portions, records go out. The bytes are not trusted. */
#pragma once

#include "user/stream/stream_record.h"
#include "user/stream/stream_write.h"

struct stream_reader;

enum { STREAM_HALT = 1 };

struct stream_handler {
	void *ctx;
	const u64 *
		line; /* the stream is made from lines of text: errors name this one; NULL: they name the chunk */
	/*
	 * Called for each record, except STREAM_CONTEXT and unknown kinds. @rec is valid during the call: the struct of
	 * @kind in user/stream/stream_record.h; struct process_event for exec, fork and exit; struct stack_event;
	 * struct heap_event for STREAM_EVENT. Stacks have the ids of their source, and come before the records that
	 * name them. 0; STREAM_HALT to stop until stream_go_on(); or -errno, see stream_refuse(), to stop for ever.
	 */
	int (*record)(void *ctx, enum stream_kind kind, const void *rec);
	/* Called for chunks of other kinds. NULL = skip them. */
	int (*chunk)(void *ctx, u8 kind, const u8 *data, size_t len);
};

/*
 * @handler is copied; @codec NULL: packed chunks are refused. The caller owns *@out. 0 or -ENOMEM. Whatever bytes
 * come, a reader takes at most 4 MiB and 48 bytes for each stack, of which there are at most STREAM_MAX_STACKS.
 */
int stream_reader_new(struct stream_reader **out, const struct stream_handler *handler,
		      const struct stream_codec *codec) __must_check;
void stream_reader_free(struct stream_reader *r);

/* Begin a new stream: forget the records before. */
void stream_reader_restart(struct stream_reader *r);

/*
 * The stream that has ended was the state at @cut of another one. Go on in that one, at byte @offset, where its chunk
 * @nr_chunks begins. Functions and modules keep their numbers. 0, or -EBADMSG: this stream has no end, or @cut is
 * wrong.
 */
int stream_reader_resume(struct stream_reader *r, const struct stream_cut *cut, u64 nr_chunks,
			 u64 offset) __must_check;

/*
 * Read @len more bytes, and call the handler for each whole record. 0; -EBADMSG: damaged, or no stream of heaptap;
 * -EPROTONOSUPPORT: another version; -EOPNOTSUPP: packed, and there is no codec; -ENOMEM; or what the handler gives.
 * stream_why() then has the reason, and all later calls return the error again.
 */
int stream_feed(struct stream_reader *r, const void *data, size_t len) __must_check;

/*
 * After stream_feed() has returned STREAM_HALT: read the rest of the chunk at hand. 0: *@offset is the byte of the
 * stream that comes next, whatever had been fed; STREAM_HALT again; or as stream_feed().
 */
int stream_go_on(struct stream_reader *r, u64 *offset) __must_check;

/*
 * The record at hand ends the reading with @err, and stream_why() has this reason. @has_place: behind the place in the
 * stream. Returns @err.
 */
int __printf(4, 5) stream_refuse(struct stream_reader *r, int err, bool has_place, const char *fmt, ...);

/* There are no more bytes: 0 if the stream has its end, -ENODATA if it breaks off. */
int stream_finish(struct stream_reader *r) __must_check;

/* One line without full stop about the last error: "chunk 12, at byte 70312: checksum does not match". */
const char *stream_why(const struct stream_reader *r);

struct stream_progress {
	u64 bytes; /* of whole chunks */
	u64 nr_chunks;
	u64 nr_events;	/* heap events */
	u64 nr_unknown; /* records and chunks of unknown kinds */
};

struct stream_progress stream_progress(const struct stream_reader *r);

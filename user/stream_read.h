/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The consumer's end of a stream: bytes in, in any portions, records out. Trusts nothing. Needs nothing but libc. */
#pragma once

#include "user/stream_record.h"
#include "user/stream_write.h"

struct stream_reader;

struct stream_handler {
	void *ctx;
	/*
	 * @rec is valid during the call: the struct of @kind in user/stream_record.h; struct process_event for
	 * exec, fork and exit, struct stack_event (h.pid tells the process), struct heap_event for STREAM_EVENT.
	 * Stacks have the ids that their source gave them; what names one is checked to come behind it. 0, or -errno
	 * to stop. Kinds that are not known here, and STREAM_CONTEXT, are not handed out.
	 */
	int (*record)(void *ctx, enum stream_kind kind, const void *rec);
	/* A chunk of another kind. NULL = they are skipped. */
	int (*chunk)(void *ctx, u8 kind, const u8 *data, size_t len);
};

/*
 * @handler is copied; @codec NULL: packed chunks are refused. *@out is owned by the caller. 0 or -ENOMEM. Whatever
 * comes in, it takes at most 4 MiB and 32 bytes for each stack, of which there are at most STREAM_MAX_STACKS.
 */
int stream_reader_new(struct stream_reader **out, const struct stream_handler *handler,
		      const struct stream_codec *codec) __must_check;
void stream_reader_free(struct stream_reader *r);

/* Forget all that was read: a new stream begins. */
void stream_reader_restart(struct stream_reader *r);

/*
 * Read on. Everything whole is handed out before it returns. 0; -EBADMSG damaged or no stream of ours; -EPROTONOSUPPORT
 * another version; -EOPNOTSUPP packed, and no codec here; -ENOMEM; or the handler's -errno. Then stream_why()
 * says what and where, and all further calls give the same.
 */
int stream_feed(struct stream_reader *r, const void *data, size_t len) __must_check;

/* The bytes are at their end: 0 if the stream is too, -ENODATA if it breaks off. */
int stream_finish(struct stream_reader *r) __must_check;

/* One line without full stop about the last error: "chunk 12, at byte 70312: checksum does not match". */
const char *stream_why(const struct stream_reader *r);

/* True when STREAM_END has been read. */
bool stream_is_over(const struct stream_reader *r);

struct stream_progress {
	u64 bytes; /* of whole chunks */
	u64 nr_chunks;
	u64 nr_events;	/* heap events */
	u64 nr_unknown; /* records and chunks of kinds that are not known here */
};

struct stream_progress stream_progress(const struct stream_reader *r);

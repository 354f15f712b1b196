/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The producer's end of a stream: records in, whole chunks out. Needs nothing but libc. */
#pragma once

#include "bpf/event.h"
#include "user/stream_format.h"

struct stream_writer;

/* Packs and unpacks chunks; stream_zstd is one (user/stream_zstd.h). Both give the bytes written, or 0 on failure. */
struct stream_codec {
	size_t (*pack)(void *out, size_t room, const void *data, size_t len);
	size_t (*unpack)(void *out, size_t room, const void *data, size_t len);
};

struct stream_writer_options {
	void *ctx;
	/* @data is the preamble or one whole chunk. 0, or -errno: nothing more is written then. */
	int (*write)(void *ctx, const void *data, size_t len);
	const struct stream_codec *codec; /* NULL = chunks are not packed */
	u32 chunk_bytes; /* unpacked; 0 = 128 KiB, at most STREAM_MAX_RAW - STREAM_MAX_RECORD */
};

/*
 * Nothing is written yet. The first record must be STREAM_HELLO. *@out is owned by the caller. 0 or -ENOMEM;
 * some 500 KiB, and 32 bytes for each stack.
 */
int stream_writer_new(struct stream_writer **out, const struct stream_writer_options *o) __must_check;

/* Does not flush. NULL is nothing. */
void stream_writer_free(struct stream_writer *w);

/*
 * Forget all that was written: a new stream begins, with the preamble and STREAM_HELLO, all dictionaries empty. An
 * error of the sink is forgotten too.
 */
void stream_writer_restart(struct stream_writer *w);

/*
 * The three that write: 0, or the first -errno of the sink, for ever; -EINVAL for what the format cannot hold,
 * which writes nothing. They call the sink when a chunk is full.
 */

/* @rec is the struct of @kind in user/stream_record.h, or struct process_event for exec, fork and exit. */
int stream_write(struct stream_writer *w, enum stream_kind kind, const void *rec) __must_check;

/*
 * Any record of bpf/event.h, @len its bytes; threads, stacks and functions are numbered on the way, a function
 * is introduced by its row of the allocator table. A stack that is known already is left out; an event's stack that
 * never came is written as lost. EVENT_MAPS is left out: STREAM_MAPS says more.
 */
int stream_write_event(struct stream_writer *w, const struct event_header *rec, size_t len) __must_check;

/* A chunk of another kind, between those with records; records before it go first. @len at most STREAM_MAX_RAW. */
int stream_write_chunk(struct stream_writer *w, u8 kind, const void *data, size_t len) __must_check;

/* Hand what is there to the sink. 0 or -errno. */
int stream_flush(struct stream_writer *w) __must_check;

/* The same if the oldest record in hand has been there for a second. @now_ns: CLOCK_MONOTONIC. */
int stream_tick(struct stream_writer *w, u64 now_ns) __must_check;

/* What other records say for the source's stack @id: its number here; STACK_LOST if it never came. */
u64 stream_stack_number(struct stream_writer *w, u64 id);

/*
 * After an error of the sink, which took nothing of the last chunk: that chunk is gone, what comes now is written
 * behind the one before. Only good for STREAM_END: other records may refer to what is gone.
 */
void stream_writer_resume(struct stream_writer *w);

struct stream_written {
	u64 bytes;     /* handed to the sink */
	u64 raw_bytes; /* before packing */
	u64 nr_events; /* heap events */
	u64 nr_stacks;
	u64 nr_dropped_stacks; /* beyond STREAM_MAX_STACKS: their events say lost */
};

struct stream_written stream_written(const struct stream_writer *w);

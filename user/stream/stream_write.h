/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Write a stream: records come in, whole chunks go out. */
#pragma once

#include "bpf/event.h"
#include "user/stream/stream_format.h"

struct stream_writer;

/*
 * Packs and unpacks chunks. Both functions return the bytes written, or 0 on failure; unpack sets errno to ENOMEM if it
 * had no memory. See user/stream/stream_zstd.h.
 */
struct stream_codec {
	size_t (*pack)(void *out, size_t room, const void *data, size_t len);
	size_t (*unpack)(void *out, size_t room, const void *data, size_t len);
};

struct stream_writer_options {
	const struct alloc_table *fns; /* borrowed; events name its rows */
	void *ctx;
	/* Called with the preamble and with each whole chunk. After an error it is not called again. 0 or -errno. */
	int (*write)(void *ctx, const void *data, size_t len);
	const struct stream_codec *codec; /* NULL = chunks are not packed */
	bool repeats_stacks; /* a stack that is in the stream is written again: readers see whether it is another one */
	bool is_coded;	 /* by user/stream/stream_coder.h, in place of that; for connections only */
	u32 chunk_bytes; /* unpacked; 0 = 128 KiB, at most STREAM_MAX_RAW - STREAM_MAX_RECORD */
};

/*
 * Nothing is written yet. The first record must be STREAM_HELLO. *@out is owned by the caller. 0 or -ENOMEM;
 * some 500 KiB, and about 60 bytes for each stack.
 */
int stream_writer_new(struct stream_writer **out, const struct stream_writer_options *o) __must_check;

/* Does not flush. @w may be NULL. */
void stream_writer_free(struct stream_writer *w);

/*
 * Begin a new stream, with the preamble and STREAM_HELLO. The writer forgets the records before, and an error of the
 * sink.
 */
void stream_writer_restart(struct stream_writer *w);

/*
 * The next three functions write, and call the sink when a chunk is full. 0, or the first -errno of the sink, also in
 * all later calls. -EINVAL: the format cannot hold the record, and nothing was written.
 */

/* @rec is the struct of @kind in user/stream/stream_record.h, or struct process_event for exec, fork and exit. */
int stream_write(struct stream_writer *w, enum stream_kind kind, const void *rec) __must_check;

/*
 * Write any record of bpf/event.h, of @len bytes. Threads, stacks and functions get their numbers here. A stack that
 * is in the stream already is left out. An event whose stack never came says that the stack is lost. EVENT_MAPS is
 * left out, because STREAM_MAPS says more.
 */
int stream_write_event(struct stream_writer *w, const struct event_header *rec, size_t len) __must_check;

/*
 * Like stream_write_event() for the stack @ev, whose mappings may be others than when it came. Readers get it with the
 * usual id, so that it is no other stack of the same id; events still name it by its own.
 */
int stream_write_stack_again(struct stream_writer *w, const struct stack_event *ev, size_t len) __must_check;

/* Write a chunk of another kind, behind the records before. @len is at most STREAM_MAX_RAW. */
int stream_write_chunk(struct stream_writer *w, u8 kind, const void *data, size_t len) __must_check;

/* Give the records that are not yet written to the sink. 0 or -errno. */
int stream_flush(struct stream_writer *w) __must_check;

/* Like stream_flush(), if the oldest unwritten record is a second old. @now_ns: CLOCK_MONOTONIC. */
int stream_tick(struct stream_writer *w, u64 now_ns) __must_check;

/* The number of the source's stack @id in this stream; STACK_LOST if the stack never came. */
u64 stream_stack_number(struct stream_writer *w, u64 id);

/* As in the options. */
const struct alloc_table *stream_writer_functions(const struct stream_writer *w);

/* Does the stream have the stack @id, behind the last stream_cut()? True for ids that are no stack. */
bool stream_has_stack(struct stream_writer *w, u64 id);

/* A place where a reader can begin, with the records of a state. */
struct stream_cut {
	u64 time, addr; /* struct stream_state */
	u64 nr_stacks;	/* numbers that are given out, those that are no stack included */
};

/*
 * Flush, and make later events independent of those before: they name no older stack and no older address, and need no
 * guess. Readers that read all notice nothing. 0 or -errno.
 */
int stream_cut(struct stream_writer *w, struct stream_cut *out) __must_check;

/* Write the functions that @of has introduced, with their numbers. 0 or -errno. */
int stream_write_functions(struct stream_writer *w, const struct stream_writer *of) __must_check;

/*
 * Continue after an error of the sink, which has written nothing of the last chunk: that chunk is lost. Only STREAM_END
 * may follow, because other records may refer to lost ones.
 */
void stream_writer_resume(struct stream_writer *w);

struct stream_written {
	u64 bytes;     /* given to the sink */
	u64 raw_bytes; /* before packing */
	u64 nr_events; /* heap events */
	u64 nr_stacks;
	u64 nr_dropped_stacks; /* beyond STREAM_MAX_STACKS; their events say that the stack is lost */
};

struct stream_written stream_written(const struct stream_writer *w);

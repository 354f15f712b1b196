/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Streams: the reader gets what was written, in any portions; it refuses damage, and keeps all records before. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "user/target/allocator.h"
#include "user/heap/heap_sample.h"
#include "user/lib/crc32c.h"
#include "user/lib/varint.h"
#include "user/stream/stream_read.h"
#include "user/stream/stream_write.h"
#include "user/stream/stream_zstd.h"
#include "tests/unit/rounds.h"

enum { MAX_BYTES = 4 << 20, MAX_EVENTS = 20000, NR_IDS = 50 };

/* A stream in memory, and the events in it. */
struct world {
	u8 *bytes;
	size_t nr, room; /* room: the sink takes no more bytes */
	struct stream_writer *writer;
	struct heap_event *events; /* that the reader should get */
	size_t nr_events;
	size_t nr_seen; /* by the reader */
	size_t nr_records[NR_STREAM_KINDS];
	bool is_exact;	 /* compare with events */
	u32 halts_every; /* events; 0 = never */
	struct stack_event last_stack;
	u64 sum; /* checksum of all records read */
	u32 chunk_sum;
};

static int sink(void *ctx, const void *data, size_t len)
{
	struct world *w = ctx;

	if (w->nr + len > w->room)
		return -ENOSPC;
	memcpy(w->bytes + w->nr, data, len);
	w->nr += len;
	return 0;
}

static struct world *new_world(const struct stream_codec *codec, u32 chunk_bytes)
{
	struct world *w = calloc(1, sizeof(*w));
	struct stream_writer_options o = { .write = sink, .codec = codec, .chunk_bytes = chunk_bytes };

	assert_non_null(w);
	o.ctx = w;
	w->room = MAX_BYTES;
	w->bytes = malloc(w->room);
	w->events = calloc(MAX_EVENTS, sizeof(*w->events));
	assert_true(w->bytes && w->events);
	assert_int_equal(stream_writer_new(&w->writer, &o), 0);
	return w;
}

static void free_world(struct world *w)
{
	stream_writer_free(w->writer);
	free(w->events);
	free(w->bytes);
	free(w);
}

static int on_event(struct world *w, const struct heap_event *ev)
{
	const struct heap_event *want = &w->events[w->nr_seen];

	if (w->is_exact) {
		assert_true(w->nr_seen < w->nr_events);
		assert_memory_equal(ev, want, sizeof(*ev));
	}
	w->nr_seen++;
	return w->halts_every && w->nr_seen % w->halts_every == 0 ? STREAM_HALT : 0;
}

static int on_record(void *ctx, enum stream_kind kind, const void *rec)
{
	struct world *w = ctx;

	w->nr_records[kind]++;
	w->sum = crc32c((u32)w->sum, &kind, sizeof(kind));
	if (kind == STREAM_STACK) {
		const struct stack_event *ev = rec;

		w->last_stack = *ev;
		w->sum = crc32c((u32)w->sum, ev, offsetof(struct stack_event, ips) + ev->nr_frames * 8);
	}
	if (kind != STREAM_EVENT)
		return 0;
	w->sum = crc32c((u32)w->sum, rec, sizeof(struct heap_event));
	return on_event(w, rec);
}

static struct stream_reader *new_reader(struct world *w)
{
	const struct stream_handler handler = { .ctx = w, .record = on_record };
	struct stream_reader *r;

	assert_int_equal(stream_reader_new(&r, &handler, &stream_zstd), 0);
	w->nr_seen = 0;
	w->sum = 0;
	memset(w->nr_records, 0, sizeof(w->nr_records));
	return r;
}

static void put(struct world *w, enum stream_kind kind, const void *rec)
{
	assert_int_equal(stream_write(w->writer, kind, rec), 0);
}

static void put_hello(struct world *w)
{
	put(w, STREAM_HELLO, &(struct stream_hello){ .id = 7, .producer = "test", .mono_ns = 1000 });
}

static void put_end(struct world *w)
{
	put(w, STREAM_END, &(struct stream_end){ .time_ns = 5 });
	assert_int_equal(stream_flush(w->writer), 0);
}

static void put_event(struct world *w, const struct heap_event *ev)
{
	assert_int_equal(stream_write_event(w->writer, &ev->h, sizeof(*ev)), 0);
	w->events[w->nr_events++] = *ev;
}

static void put_stack(struct world *w, u64 id, u16 nr)
{
	struct stack_event ev = { .h = { .kind = EVENT_STACK, .pid = 5 }, .id = id, .nr_frames = nr };

	for (u16 i = 0; i < nr; i++)
		ev.ips[i] = 0x7f0000001000 + (u64)(i < nr / 2 ? id * 64 : 0) + i * 16;
	assert_int_equal(stream_write_event(w->writer, &ev.h, sizeof(ev)), 0);
}

static u64 below(u64 max)
{
	return (u64)rand() % max;
}

/* Events of all kinds, some with strange values; times in order. */
static struct heap_event random_event(u64 *time)
{
	static const u64 odd[] = { 0, 1, 0xffffffffffffffff, 0x8000000000000000, 0xfff, 0x100000001 };
	struct heap_event ev = { .h.kind = EVENT_ALLOC + below(4), .h.pid = 5 + below(2) };

	ev.h.tid = 100 + (below(50) ? below(3) : below(3000));
	ev.h.fn = below(20) ? 1 + below(2) : below(alloc_fn_count(NULL));
	ev.h.flags = below(10) ? 0 : below(8);
	*time += below(100) ? below(500) : 1ULL << below(40);
	ev.time_ns = *time;
	ev.addr = below(30) ? 0x555500000000 + 16 * below(1000) : odd[below(ARRAY_SIZE(odd))];
	if (ev.h.kind > EVENT_FREE || below(30) == 0)
		ev.old_addr = below(3) ? 0x555500000000 + 16 * below(1000) : 0;
	if (ev.h.kind == EVENT_REALLOC_BEGIN && below(30))
		ev.addr = 0;
	ev.size = below(4) ? 32 : below(30) ? below(4000) : odd[below(ARRAY_SIZE(odd))];
	if (ev.h.kind == EVENT_FREE && below(30))
		ev.size = 0;
	ev.stack = below(20) ? below(NR_IDS + STACK_FIRST_ID) : 0;
	ev.h.distance = below(10) ? 0 : (u32)below(SAMPLE_MARKS_END);
	return ev;
}

/* A realloc: the beginning and its end. */
static void put_realloc(struct world *w, u64 *time)
{
	struct heap_event ev = random_event(time);

	ev.h.flags = 0;
	ev.h.kind = EVENT_REALLOC_BEGIN;
	ev.addr = 0;
	put_event(w, &ev);
	ev.h.kind = EVENT_REALLOC_END;
	ev.addr = 0x555500004000 + 16 * (rand() % 100);
	put_event(w, &ev);
}

static void fill(struct world *w, size_t nr)
{
	u64 time = 1000;

	put_hello(w);
	for (u64 id = STACK_FIRST_ID; id < NR_IDS + STACK_FIRST_ID; id++)
		put_stack(w, id, id % 30);
	while (w->nr_events < nr) {
		struct heap_event ev = random_event(&time);

		if (rand() % 10 == 0)
			put_realloc(w, &time);
		else
			put_event(w, &ev);
	}
	put_end(w);
}

static void all_portions(const struct stream_codec *codec, size_t portion)
{
	struct world *w = new_world(codec, 3000);
	struct stream_reader *r;

	srand(1);
	fill(w, 10000);
	w->is_exact = true;
	r = new_reader(w);
	for (size_t at = 0; at < w->nr;) {
		size_t len = portion ? portion : 1 + (size_t)rand() % 5000;

		len = len < w->nr - at ? len : w->nr - at;
		assert_int_equal(stream_feed(r, w->bytes + at, len), 0);
		at += len;
	}
	assert_int_equal(stream_finish(r), 0);
	assert_int_equal(w->nr_seen, w->nr_events);
	assert_int_equal(w->nr_records[STREAM_STACK], NR_IDS);
	assert_int_equal(stream_progress(r).nr_events, w->nr_events);
	assert_int_equal(stream_progress(r).bytes, w->nr);
	assert_int_equal(stream_written(w->writer).bytes, w->nr);
	assert_int_equal(stream_progress(r).nr_unknown, 0);
	stream_reader_free(r);
	free_world(w);
}

/* The reader gets the events that were written, in any portions, packed or not. */
static void round_trip(void **state)
{
	(void)state;
	all_portions(NULL, 1);
	all_portions(NULL, 0);
	all_portions(&stream_zstd, 7);
	all_portions(&stream_zstd, 0);
}

/* A reader that halts at any event goes on as if it had not. */
static void halts(void **state)
{
	(void)state;
	for (u32 every = 1; every < 600; every += 199) {
		struct world *w = new_world(&stream_zstd, 3000);
		struct stream_reader *r;
		u64 at = 0, nr = 0;
		int err;

		fill(w, 3000);
		w->is_exact = true;
		w->halts_every = every;
		r = new_reader(w);
		do {
			err = stream_feed(r, w->bytes + at, w->nr - at);
			at = err ? at : w->nr;
			for (; err == STREAM_HALT; nr++)
				err = stream_go_on(r, &at);
			assert_int_equal(err, 0);
		} while (at < w->nr);
		assert_int_equal(stream_finish(r), 0);
		assert_int_equal(nr, w->nr_seen / every);
		assert_int_equal(w->nr_seen, w->nr_events);
		stream_reader_free(r);
		free_world(w);
	}
}

/* After a restart both ends have forgotten the stream before. */
static void restarts(void **state)
{
	struct world *w = new_world(NULL, 0);
	struct stream_reader *r;

	(void)state;
	fill(w, 100);
	r = new_reader(w);
	assert_int_equal(stream_feed(r, w->bytes, w->nr - 3), 0);
	stream_writer_restart(w->writer);
	stream_reader_restart(r);
	w->nr = w->nr_events = w->nr_seen = 0;
	fill(w, 200);
	w->is_exact = true;
	assert_int_equal(stream_feed(r, w->bytes, w->nr), 0);
	assert_int_equal(stream_finish(r), 0);
	assert_int_equal(w->nr_seen, 200);
	stream_reader_free(r);
	free_world(w);
}

/* More threads than a stream remembers at one time. */
static void many_threads(void **state)
{
	struct world *w = new_world(NULL, 0);
	struct stream_reader *r;

	(void)state;
	put_hello(w);
	for (u32 i = 0; i < 3 * STREAM_MAX_THREADS; i++) {
		struct heap_event ev = { .h = { .kind = EVENT_ALLOC, .fn = 1, .pid = 5 }, .addr = 16 * i };

		ev.h.tid = 100 + i * 7 % (2 * STREAM_MAX_THREADS);
		ev.time_ns = 1000 + i;
		put_event(w, &ev);
	}
	put_end(w);
	w->is_exact = true;
	r = new_reader(w);
	assert_int_equal(stream_feed(r, w->bytes, w->nr), 0);
	assert_int_equal(stream_finish(r), 0);
	assert_int_equal(w->nr_seen, 3 * STREAM_MAX_THREADS);
	stream_reader_free(r);
	free_world(w);
}

/* More stacks than the first tables hold. A stack that never came is lost. */
static void many_stacks(void **state)
{
	struct world *w = new_world(&stream_zstd, 0);
	struct stream_reader *r;
	enum { NR = 5000 };

	(void)state;
	put_hello(w);
	for (u64 i = 0; i < NR; i++) {
		struct heap_event ev = { .h = { .kind = EVENT_ALLOC, .fn = 1, .pid = 5, .tid = 5 },
					 .addr = 64 };

		put_stack(w, 0x9e3779b97f4a7c15ULL * (i + 1), i % (STACK_MAX_FRAMES + 1));
		ev.stack = 0x9e3779b97f4a7c15ULL * (i + 1);
		ev.time_ns = 1000 + i;
		ev.size = i;
		put_event(w, &ev);
	}
	put_event(w, &(struct heap_event){ .h = { .kind = EVENT_ALLOC, .fn = 1, .pid = 5, .tid = 5 },
					   .time_ns = 9000,
					   .stack = 12345 });
	w->events[NR].stack = STACK_LOST;
	put_end(w);
	w->is_exact = true;
	r = new_reader(w);
	assert_int_equal(stream_feed(r, w->bytes, w->nr), 0);
	assert_int_equal(stream_finish(r), 0);
	assert_int_equal(w->nr_records[STREAM_STACK], NR);
	assert_true(w->last_stack.id == 0x9e3779b97f4a7c15ULL * NR);
	stream_reader_free(r);
	free_world(w);
}

/* Times grow, in units, and never go back. */
static void units_of_time(void **state)
{
	static const u64 in[] = { 1000, 5000, 4000, 1 << 20 }, out[] = { 768, 4864, 4864, 1 << 20 };
	struct world *w = new_world(NULL, 0);
	struct stream_reader *r;

	(void)state;
	put(w, STREAM_HELLO, &(struct stream_hello){ .time_shift = 8, .mono_ns = 900 });
	for (size_t i = 0; i < ARRAY_SIZE(in); i++) {
		put_event(w, &(struct heap_event){ .h = { .kind = EVENT_FREE, .fn = 5, .pid = 5, .tid = 5 },
						   .addr = 64 * i,
						   .time_ns = in[i] });
		w->events[i].time_ns = out[i];
	}
	put_end(w);
	w->is_exact = true;
	r = new_reader(w);
	assert_int_equal(stream_feed(r, w->bytes, w->nr), 0);
	assert_int_equal(w->nr_seen, ARRAY_SIZE(in));
	stream_reader_free(r);
	free_world(w);
}

static const struct stream_module module = { .module = 1,
					     .dev = 0xfd00,
					     .ino = 1ULL << 40,
					     .build_id = { 1, 2, 0, 4 },
					     .build_id_len = 4,
					     .path = "/usr/bin/x y" };
static const struct stream_process process = { .pid = 4194303,
					       .ppid = 1,
					       .uid = 0xffffffff,
					       .flags = STREAM_STARTED,
					       .word_size = 8,
					       .machine = 62,
					       .time_ns = 1ULL << 63,
					       .comm = "a\33[0m",
					       .exe = "" };

static int on_meta(void *ctx, enum stream_kind kind, const void *rec)
{
	size_t *nr = ctx;
	const struct stream_module *m = rec;
	const struct stream_process *p = rec;

	if (kind == STREAM_MODULE) {
		assert_int_equal(m->build_id_len, module.build_id_len);
		assert_memory_equal(m->build_id, module.build_id, sizeof(m->build_id));
		assert_string_equal(m->path, module.path);
		assert_int_equal(m->ino, module.ino);
	}
	if (kind == STREAM_PROCESS) {
		assert_int_equal(p->pid, process.pid);
		assert_int_equal(p->uid, process.uid);
		assert_int_equal(p->time_ns, process.time_ns);
		assert_string_equal(p->comm, process.comm);
		assert_string_equal(p->exe, "");
	}
	if (kind == STREAM_EXIT) {
		assert_int_equal(((const struct process_event *)rec)->h.kind, EVENT_EXIT);
		assert_int_equal(((const struct process_event *)rec)->exit_status, 256);
	}
	++*nr;
	return 0;
}

static void records(void **state)
{
	const struct process_event life = { .h = { .kind = EVENT_EXIT, .pid = 7 }, .exit_status = 256 };
	struct world *w = new_world(NULL, 0);
	struct stream_reader *r;
	size_t nr = 0;
	const struct stream_handler handler = { .ctx = &nr, .record = on_meta };

	(void)state;
	put_hello(w);
	put(w, STREAM_MODULE, &module);
	put(w, STREAM_PROCESS, &process);
	assert_int_equal(stream_write_event(w->writer, &life.h, sizeof(life)), 0);
	put_end(w);
	assert_int_equal(stream_reader_new(&r, &handler, NULL), 0);
	assert_int_equal(stream_feed(r, w->bytes, w->nr), 0);
	assert_int_equal(nr, 5);
	stream_reader_free(r);
	free_world(w);
}

static int on_chunk(void *ctx, u8 kind, const u8 *data, size_t len)
{
	struct world *w = ctx;

	assert_int_equal(kind, STREAM_CHUNK_PRIVATE);
	w->chunk_sum = crc32c(0, data, len);
	return 0;
}

/* Chunks of other kinds go to the handler, or are skipped. */
static void private_chunks(void **state)
{
	struct world *w = new_world(NULL, 0);
	struct stream_handler handler = { .ctx = w, .record = on_record, .chunk = on_chunk };
	struct stream_reader *r;

	(void)state;
	put_hello(w);
	assert_int_equal(stream_write_chunk(w->writer, STREAM_CHUNK_PRIVATE, "abc", 3), 0);
	put_end(w);
	assert_int_equal(stream_reader_new(&r, &handler, NULL), 0);
	assert_int_equal(stream_feed(r, w->bytes, w->nr), 0);
	assert_int_equal(w->chunk_sum, crc32c(0, "abc", 3));
	stream_reader_free(r);
	handler.chunk = NULL;
	assert_int_equal(stream_reader_new(&r, &handler, NULL), 0);
	assert_int_equal(stream_feed(r, w->bytes, w->nr), 0);
	assert_int_equal(stream_progress(r).nr_unknown, 1);
	stream_reader_free(r);
	free_world(w);
}

/* A stream cut at each byte: the reader gets all whole chunks, and misses the end (F4, F7). */
static void truncated_at_every_byte(void **state)
{
	struct world *w = new_world(&stream_zstd, 300);
	size_t last = 0;

	(void)state;
	srand(2);
	fill(w, 500);
	w->is_exact = true;
	for (size_t len = 0; len <= w->nr; len++) {
		struct stream_reader *r = new_reader(w);

		assert_int_equal(stream_feed(r, w->bytes, len), 0);
		assert_int_equal(stream_finish(r), len < w->nr ? -ENODATA : 0);
		assert_true(len == w->nr || strlen(stream_why(r)) > 5);
		assert_true(w->nr_seen >= last);
		last = w->nr_seen;
		stream_reader_free(r);
	}
	assert_int_equal(last, w->nr_events);
	free_world(w);
}

/* A stream with one changed bit: the reader refuses the chunk, and gets all chunks before it (F4). */
static void every_bit_turned(void **state)
{
	struct world *w = new_world(&stream_zstd, 300);

	(void)state;
	srand(3);
	fill(w, 100);
	w->is_exact = true;
	for (size_t bit = 0; bit < 8 * w->nr; bit++) {
		struct stream_reader *r = new_reader(w);
		int err;

		w->bytes[bit / 8] ^= 1 << bit % 8;
		err = stream_feed(r, w->bytes, w->nr);
		if (!err)
			err = stream_finish(r);
		assert_true(err == -EBADMSG || err == -ENODATA);
		assert_true(stream_progress(r).bytes <= bit / 8 || !stream_progress(r).bytes);
		w->bytes[bit / 8] ^= 1 << bit % 8;
		stream_reader_free(r);
	}
	free_world(w);
}

/* The number of values that each byte gets: 16, different for each byte; all 256 in make soak. */
static size_t values_per_byte(void)
{
	return rounds() >= 100 ? 256 : 16;
}

/* An attacker changes bytes and corrects the checksums: the reader may not crash (F5). */
static void hostile_bytes(void **state)
{
	struct world *w = new_world(NULL, STREAM_MAX_RAW);
	size_t len, nr_values = values_per_byte();

	(void)state;
	srand(4);
	fill(w, 100);
	len = le32_get(w->bytes + STREAM_PREAMBLE_LEN + 4);
	assert_int_equal(w->nr, STREAM_PREAMBLE_LEN + STREAM_HEADER_LEN + len);
	for (size_t i = 0; i < nr_values * len; i++) {
		struct stream_reader *r = new_reader(w);
		u8 *chunk = w->bytes + STREAM_PREAMBLE_LEN;
		u8 *byte = chunk + STREAM_HEADER_LEN + i / nr_values, old = *byte;

		*byte = (u8)(i % nr_values * (256 / nr_values) + i / nr_values);
		le32_put(chunk, crc32c(0, chunk + 4, STREAM_HEADER_LEN - 4 + len));
		if (!stream_feed(r, w->bytes, w->nr) && stream_finish(r))
			assert_true(strlen(stream_why(r)) > 5);
		*byte = old;
		stream_reader_free(r);
	}
	free_world(w);
}

/* Read a chunk with the bytes of @body behind a beginning, and check the error and its text. */
static int try_body(struct world *w, const u8 *body, size_t len, char *why)
{
	struct stream_reader *r = new_reader(w);
	u8 *chunk;
	int err;

	stream_writer_restart(w->writer);
	w->nr = 0;
	put_hello(w);
	assert_int_equal(stream_flush(w->writer), 0);
	chunk = w->bytes + w->nr;
	memset(chunk, 0, STREAM_HEADER_LEN);
	memcpy(chunk + STREAM_HEADER_LEN, body, len);
	le32_put(chunk + 4, (u32)len);
	le32_put(chunk + 8, (u32)len);
	le32_put(chunk + 12, 1);
	chunk[16] = STREAM_CHUNK_RECORDS;
	le32_put(chunk, crc32c(0, chunk + 4, STREAM_HEADER_LEN - 4 + len));
	err = stream_feed(r, w->bytes, w->nr + STREAM_HEADER_LEN + len);
	snprintf(why, 200, "%s", stream_why(r));
	stream_reader_free(r);
	return err;
}

/* Wrong values with a correct checksum are refused, each with its own reason (F5). */
static void lies(void **state)
{
#define HUGE_NUMBER 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01
	static const struct {
		const char *why;
		u8 len;
		u8 body[40];
	} bodies[] = {
		{ "a record is longer than its chunk", 12, { 0, STREAM_MARK, HUGE_NUMBER } },
		{ "a record cannot be understood", 16, { 0, STREAM_THREAD, 13, 1, 1, HUGE_NUMBER, 'x' } },
		{ "a record cannot be understood", 13, { 0, STREAM_MAPS, 10, HUGE_NUMBER } },
		{ "the frames of a stack cannot be understood",
		  17,
		  { 0, STREAM_STACK, 14, 5, 1, 0, HUGE_NUMBER, 0 } },
		{ "the frames of a stack cannot be understood", 8, { 0, STREAM_STACK, 5, 5, 1, 0, 3, 1 } },
		{ "the frames of a stack cannot be understood",
		  16,
		  { 0, STREAM_STACK, 13, 5, 1, 0, 9, 9, 9, 9, 9, 9, 9, 9, 128, 128 } },
		{ "an event cannot be understood", 4, { OP_ALLOC | OP_STACK, 1, 2, 2 } },
		{ "an event cannot be understood", 3, { OP_FREE | OP_RECENT, 1, 1 } },
		{ "an event cannot be understood", 2, { OP_REALLOC_END, 1 } },
		{ "an event cannot be understood", 1, { OP_SAMPLED } },
		{ "a thread cannot be understood", 15, { 0, STREAM_CONTEXT, 12, HUGE_NUMBER, 5, 5 } },
		{ "number of a module out of order", 4, { 0, STREAM_MODULE, 1, 2 } },
		{ "mapping of a module that is not there", 8, { 0, STREAM_MAPPING, 5, 0, 1, 0, 0, 1 } },
		{ "verdicts of a stack that is not there", 5, { 0, STREAM_SCAN_ROW, 2, 9, 1 } },
		{ "no record begins like this", 1, { 8 } },
		{ "a record is cut off", 1, { 0 } },
		{ "a second beginning", 4, { 0, STREAM_HELLO, 1, 0 } },
		{ "more records behind the end", 6, { 0, STREAM_END, 0, 0, STREAM_MARK, 0 } },
		{ "a stack has the id of none",
		  16,
		  { 0, STREAM_STACK, 13, 5, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0 } },
	};
	struct world *w = new_world(NULL, 0);
	char why[200];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bodies); i++) {
		assert_int_equal(try_body(w, bodies[i].body, bodies[i].len, why), -EBADMSG);
		assert_non_null(strstr(why, "chunk 1, at byte "));
		if (!strstr(why, bodies[i].why))
			fail_msg("%zu: '%s', not '%s'", i, why, bodies[i].why);
	}
	/* Unknown records are skipped. */
	assert_int_equal(try_body(w, (const u8 *)"\0\77\2xy\0\60\0", 8, why), 0);
	free_world(w);
}

/* Chunks that announce or pack too many bytes (F5). */
static void bombs(void **state)
{
	struct world *w = new_world(&stream_zstd, 0);
	static u8 zeros[STREAM_MAX_RAW];
	u8 *chunk;
	size_t len;
	u32 claims[] = { STREAM_MAX_RAW + 1, 0xffffffff, 100 };

	(void)state;
	put_hello(w);
	assert_int_equal(stream_flush(w->writer), 0);
	chunk = w->bytes + w->nr;
	len = stream_zstd.pack(chunk + STREAM_HEADER_LEN, 100000, zeros, sizeof(zeros));
	assert_true(len > 0 && len < 1000);
	for (size_t i = 0; i < ARRAY_SIZE(claims); i++) {
		struct stream_reader *r = new_reader(w);

		le32_put(chunk + 4, (u32)len);
		le32_put(chunk + 8, claims[i]);
		le32_put(chunk + 12, 1);
		chunk[16] = STREAM_CHUNK_RECORDS;
		chunk[17] = STREAM_PACKED;
		le16_put(chunk + 18, 0);
		le32_put(chunk, crc32c(0, chunk + 4, STREAM_HEADER_LEN - 4 + len));
		assert_int_equal(stream_feed(r, w->bytes, w->nr + STREAM_HEADER_LEN + len), -EBADMSG);
		stream_reader_free(r);
	}
	free_world(w);
}

static int try_start(const void *bytes, size_t len, char *why)
{
	struct world w = { 0 };
	struct stream_reader *r = new_reader(&w);
	int err = stream_feed(r, bytes, len);

	if (!err)
		err = stream_finish(r);
	snprintf(why, 200, "%s", stream_why(r));
	stream_reader_free(r);
	return err;
}

/* Files that are no recordings, or have another version. */
static void strange_starts(void **state)
{
	u8 preamble[16] = STREAM_MAGIC;
	char why[200];

	(void)state;
	assert_int_equal(try_start("", 0, why), -ENODATA);
	assert_string_equal(why, "is empty");
	assert_int_equal(try_start("GET / HTTP/1.1\r\n\r\n", 18, why), -EBADMSG);
	assert_string_equal(why, "is no recording of heaptap");
	assert_int_equal(try_start(preamble, 16, why), -EBADMSG);
	assert_string_equal(why, "its first 16 bytes are damaged");
	preamble[8] = STREAM_MAJOR + 1;
	le32_put(preamble + 12, crc32c(0, preamble, 12));
	assert_int_equal(try_start(preamble, 16, why), -EPROTONOSUPPORT);
	assert_string_equal(why, "is in format 3, this heaptap reads format 2: use a newer one");
	preamble[8] = STREAM_MAJOR;
	preamble[10] = 77;
	le32_put(preamble + 12, crc32c(0, preamble, 12));
	assert_int_equal(try_start(preamble, 16, why), -ENODATA);
}

/* The first error of the sink stays; chunks that the sink took before are readable. */
static void full_sink(void **state)
{
	struct world *w = new_world(NULL, 1000);
	struct heap_event ev = { .h = { .kind = EVENT_ALLOC, .fn = 1, .pid = 5, .tid = 5 }, .size = 1 };
	struct stream_reader *r;
	int err = 0;

	(void)state;
	w->room = 5000;
	put_hello(w);
	for (u32 i = 0; i < 5000 && !err; i++) {
		ev.addr = 64 + (u64)i * 4096;
		ev.time_ns = 1000 + i;
		err = stream_write_event(w->writer, &ev.h, sizeof(ev));
	}
	assert_int_equal(err, -ENOSPC);
	assert_int_equal(stream_write_event(w->writer, &ev.h, sizeof(ev)), -ENOSPC);
	assert_int_equal(stream_flush(w->writer), -ENOSPC);
	assert_int_equal(stream_tick(w->writer, 1), -ENOSPC);
	r = new_reader(w);
	assert_int_equal(stream_feed(r, w->bytes, w->nr), 0);
	assert_true(w->nr_seen > 100);
	stream_reader_free(r);
	free_world(w);
}

/* A record goes to the sink when it is one second old. */
static void ticks(void **state)
{
	struct world *w = new_world(NULL, 0);
	const u64 second = 1000000000;

	(void)state;
	put_hello(w);
	assert_int_equal(stream_tick(w->writer, 5 * second), 0);
	assert_int_equal(stream_tick(w->writer, 5 * second + second / 2), 0);
	assert_int_equal(w->nr, 0);
	assert_int_equal(stream_tick(w->writer, 6 * second), 0);
	assert_true(w->nr > 0);
	free_world(w);
}

static void checksums(void **state)
{
	u8 zeros[32] = { 0 };

	(void)state;
	/* Examples of RFC 3720, B.4, and the usual check value. */
	assert_int_equal(crc32c(0, zeros, sizeof(zeros)), 0x8a9136aa);
	assert_int_equal(crc32c(0, "123456789", 9), 0xe3069283);
	assert_int_equal(crc32c(crc32c(0, "1234", 4), "56789", 5), 0xe3069283);
}

static void varints(void **state)
{
	u8 bytes[VARINT_MAX];
	u64 value = 0;

	(void)state;
	for (u32 bit = 0; bit < 64; bit++) {
		const u64 tries[] = { 1ULL << bit, (1ULL << bit) - 1, 0 - (1ULL << bit) };

		for (size_t i = 0; i < ARRAY_SIZE(tries); i++) {
			const u8 *end = varint_put(bytes, tries[i]);

			assert_int_equal(end - bytes, varint_len(tries[i]));
			assert_ptr_equal(varint_get(bytes, end, &value), end);
			assert_true(value == tries[i]);
			assert_null(varint_get(bytes, end - 1, &value));
			assert_true(from_zigzag(to_zigzag(tries[i])) == tries[i]);
		}
	}
	memset(bytes, 0xff, sizeof(bytes));
	assert_null(varint_get(bytes, bytes + sizeof(bytes), &value));
	bytes[9] = 2;
	assert_null(varint_get(bytes, bytes + sizeof(bytes), &value));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(checksums),
		cmocka_unit_test(varints),
		cmocka_unit_test(round_trip),
		cmocka_unit_test(restarts),
		cmocka_unit_test(many_threads),
		cmocka_unit_test(many_stacks),
		cmocka_unit_test(halts),
		cmocka_unit_test(units_of_time),
		cmocka_unit_test(records),
		cmocka_unit_test(private_chunks),
		cmocka_unit_test(truncated_at_every_byte),
		cmocka_unit_test(every_bit_turned),
		cmocka_unit_test(hostile_bytes),
		cmocka_unit_test(lies),
		cmocka_unit_test(bombs),
		cmocka_unit_test(strange_starts),
		cmocka_unit_test(full_sink),
		cmocka_unit_test(ticks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

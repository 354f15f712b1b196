/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Coded chunks: both ends learn alike, what does not pack is sent as it is, and no bytes harm a reader. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "user/lib/crc32c.h"
#include "user/lib/varint.h"
#include "user/stream/stream_coder.h"
#include "user/stream/stream_read.h"
#include "user/stream/stream_record.h"
#include "user/stream/stream_write.h"

enum { MAX_BYTES = 4 << 20, NR_LIVE = 1000 };

/* A connection in memory. */
struct link {
	u8 bytes[MAX_BYTES];
	size_t nr;
	u64 nr_plain, nr_coded; /* chunks */
	struct stream_writer *writer;
	struct stream_reader *reader;
	u32 written, read; /* checksums of events */
	u64 nr_read, time_ns;
};

static int take_chunk(void *ctx, const void *data, size_t len)
{
	struct link *l = ctx;

	assert_true(l->nr + len <= MAX_BYTES);
	memcpy(l->bytes + l->nr, data, len);
	l->nr += len;
	if (len > STREAM_HEADER_LEN) {
		l->nr_coded += ((const u8 *)data)[17] == STREAM_CODED;
		l->nr_plain += ((const u8 *)data)[17] == 0;
	}
	return 0;
}

static int take_record(void *ctx, enum stream_kind kind, const void *rec)
{
	struct link *l = ctx;

	if (kind == STREAM_EVENT) {
		l->read = crc32c(l->read, rec, sizeof(struct heap_event));
		l->nr_read++;
	}
	return 0;
}

static struct link *new_link(u32 chunk_bytes)
{
	struct link *l = calloc(1, sizeof(*l));
	const struct stream_handler handler = { .ctx = l, .record = take_record };
	const struct stream_writer_options o = {
		.ctx = l, .write = take_chunk, .is_coded = true, .chunk_bytes = chunk_bytes
	};

	assert_non_null(l);
	assert_int_equal(stream_writer_new(&l->writer, &o), 0);
	assert_int_equal(stream_reader_new(&l->reader, &handler, NULL), 0);
	return l;
}

static void free_link(struct link *l)
{
	stream_writer_free(l->writer);
	stream_reader_free(l->reader);
	free(l);
}

static void put_hello(struct link *l)
{
	const struct stream_hello hello = { .id = 7, .producer = "test", .role = STREAM_ROLE_TARGET };

	assert_int_equal(stream_write(l->writer, STREAM_HELLO, &hello), 0);
}

static void put_event(struct link *l, const struct heap_event *ev)
{
	assert_int_equal(stream_write_event(l->writer, &ev->h, sizeof(*ev)), 0);
	l->written = crc32c(l->written, ev, sizeof(*ev));
}

/* A program that replaces one of its blocks at random again and again. */
static void put_pairs(struct link *l, u32 nr)
{
	static u64 live[NR_LIVE];

	memset(live, 0, sizeof(live));
	for (u32 i = 0; i < nr; i++) {
		u64 *block = &live[rand() % NR_LIVE];
		struct heap_event ev = { .h = { .kind = EVENT_FREE, .fn = 2, .pid = 5, .tid = 5 },
					 .addr = *block };

		ev.time_ns = l->time_ns += 500;
		if (*block)
			put_event(l, &ev);
		else
			*block = 0x555500000000 + 64 * (u64)i;
		ev.addr = *block;
		ev.h.kind = EVENT_ALLOC;
		ev.h.fn = 1;
		ev.size = 50;
		put_event(l, &ev);
	}
}

/* Give the reader what was written since the last time. */
static void deliver(struct link *l)
{
	assert_int_equal(stream_flush(l->writer), 0);
	assert_int_equal(stream_feed(l->reader, l->bytes, l->nr), 0);
	assert_int_equal(l->read, l->written);
	l->nr = 0;
}

/* Long chunks and short ones, each with what was learned from those before; and again from the beginning. */
static void learns(void **state)
{
	struct link *l = new_link(8192);

	(void)state;
	srand(1);
	for (u32 turn = 0; turn < 3; turn++) {
		size_t bytes = 0;

		put_hello(l);
		for (u32 i = 0; i < 300; i++) {
			put_pairs(l, i % 50 ? 30 : 20000);
			assert_int_equal(stream_flush(l->writer), 0);
			bytes += l->nr;
			deliver(l);
		}
		assert_true(l->nr_coded > 300);
		/* Less than two bytes an event. */
		assert_true(bytes < 2 * l->nr_read);
		stream_writer_restart(l->writer);
		stream_reader_restart(l->reader);
		l->written = l->read = l->nr_read = l->nr_coded = 0;
	}
	free_link(l);
}

/* A chunk of random bytes would be longer: it is sent plainly, and both ends begin anew. */
static void does_not_pack(void **state)
{
	struct link *l = new_link(4096);

	(void)state;
	srand(2);
	put_hello(l);
	for (u32 i = 0; i < 200; i++) {
		char text[STREAM_MAX_STRING];
		const struct stream_mark_record mark = { .what = STREAM_MARK_USER, .text = text };

		put_pairs(l, 100);
		deliver(l);
		for (u32 k = 0; k < sizeof(text); k++)
			text[k] = (char)(k + 1 < sizeof(text) ? 1 + rand() % 255 : 0);
		if (i % 3 == 0)
			assert_int_equal(stream_write(l->writer, STREAM_MARK, &mark), 0);
		deliver(l);
	}
	assert_true(l->nr_plain > 10);
	assert_true(l->nr_coded > 100);
	free_link(l);
}

/* Any bytes with a right checksum: an error or not, and nothing worse. */
static void hostile_bytes(void **state)
{
	u8 chunk[STREAM_HEADER_LEN + 300];
	u32 nr_refused = 0;

	(void)state;
	srand(3);
	for (u32 i = 0; i < 300; i++) {
		struct link *l = new_link(4096);
		u32 len = 1 + (u32)rand() % 300;
		int err;

		put_hello(l);
		put_pairs(l, 100);
		assert_int_equal(stream_flush(l->writer), 0);
		for (u32 k = 0; k < len; k++)
			chunk[STREAM_HEADER_LEN + k] = (u8)rand();
		le32_put(chunk + 4, len);
		le32_put(chunk + 8, i % 10 ? len + (u32)rand() % 3000 : STREAM_MAX_RAW);
		le32_put(chunk + 12, (u32)(l->nr_coded + l->nr_plain));
		chunk[16] = STREAM_CHUNK_RECORDS;
		chunk[17] = STREAM_CODED;
		le16_put(chunk + 18, 0);
		le32_put(chunk, crc32c(0, chunk + 4, STREAM_HEADER_LEN - 4 + len));
		assert_int_equal(stream_feed(l->reader, l->bytes, l->nr), 0);
		err = stream_feed(l->reader, chunk, STREAM_HEADER_LEN + len);
		assert_true(!err || err == -EBADMSG);
		nr_refused += err != 0;
		free_link(l);
	}
	assert_true(nr_refused > 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(learns),
		cmocka_unit_test(does_not_pack),
		cmocka_unit_test(hostile_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Cuts and seek points: what follows a cut needs nothing before it, and a hostile seek point is none (F5). */
#include "user/stream/seek.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "user/lib/crc32c.h"
#include "user/lib/varint.h"
#include "user/stream/span.h"
#include "user/stream/stream_read.h"
#include "user/stream/stream_zstd.h"
#include "user/target/allocator.h"

enum { NR_EVENTS = 4000, NR_STACKS = 30, NR_THREADS = 5, MAX_BYTES = 1 << 20 };

static const struct seek_head good = { .cut = { .time = 7, .addr = 0x1000, .nr_stacks = 9 },
				       .time_ns = 500,
				       .start_ns = 100,
				       .has_all = true,
				       .nr_marks = 1,
				       .marks = { { 300, "one" } } };

/* Bytes of a stream, and the events that were read from it. */
struct world {
	u8 bytes[MAX_BYTES];
	size_t nr;
	struct heap_event written[NR_EVENTS], seen[NR_EVENTS];
	size_t nr_seen;
	u64 nr_chunks;
};

static int sink(void *ctx, const void *data, size_t len)
{
	struct world *w = ctx;

	assert_true(w->nr + len <= sizeof(w->bytes));
	w->nr_chunks += w->nr > 0;
	memcpy(w->bytes + w->nr, data, len);
	w->nr += len;
	return 0;
}

static int on_record(void *ctx, enum stream_kind kind, const void *rec)
{
	struct world *w = ctx;

	if (kind != STREAM_EVENT)
		return 0;
	assert_true(w->nr_seen < NR_EVENTS);
	w->seen[w->nr_seen++] = *(const struct heap_event *)rec;
	return 0;
}

static void put(struct stream_writer *w, enum stream_kind kind, const void *rec)
{
	assert_int_equal(stream_write(w, kind, rec), 0);
}

static void begin(struct stream_writer *w)
{
	put(w, STREAM_HELLO, &(struct stream_hello){ .id = 7, .producer = "test", .mono_ns = 1000 });
}

/* Any event, in which fields repeat as they do in a program; its stack comes before it if the stream has none. */
static struct heap_event any_event(struct stream_writer *w, u32 *seed, u64 now)
{
	static const u8 kinds[] = { EVENT_ALLOC, EVENT_ALLOC, EVENT_FREE, EVENT_REALLOC_BEGIN,
				    EVENT_REALLOC_END };
	static u64 begun[NR_THREADS], freed[2];
	u32 thread = (u32)rand_r(seed) % NR_THREADS;
	struct heap_event ev = { .h = { .kind = kinds[rand_r(seed) % 5], .pid = 5, .tid = 5 + thread },
				 .time_ns = now };
	struct stack_event stack = { .h = { .kind = EVENT_STACK, .pid = 5 }, .nr_frames = 3 };

	ev.stack = 100 + (u64)(rand_r(seed) % NR_STACKS);
	ev.size = 16 * (ev.stack % 3) + (rand_r(seed) % 4 == 0);
	ev.h.fn = (u16)(1 + ev.stack % 2);
	if (ev.h.kind == EVENT_REALLOC_BEGIN)
		ev.old_addr = begun[thread] = 0x10000 + 16 * (u64)(rand_r(seed) % 500);
	else
		ev.addr = 0x10000 + 16 * (u64)(rand_r(seed) % 500);
	if (ev.h.kind == EVENT_FREE) {
		ev.size = 0;
		freed[1] = freed[0];
		freed[0] = ev.addr;
	} else if (ev.h.kind == EVENT_ALLOC && rand_r(seed) % 2) {
		ev.addr = freed[rand_r(seed) % 2];
	}
	stack.id = ev.stack;
	for (u32 i = 0; i < 3; i++)
		stack.ips[i] = 0x400000 + ev.stack * (i < 2) * 16;
	if (!stream_has_stack(w, ev.stack))
		assert_int_equal(
			stream_write_event(w, &stack.h, offsetof(struct stack_event, ips) + 3 * sizeof(u64)),
			0);
	return ev;
}

/* All events from the reader, or those behind the cut alone: both are what was written. */
static void events_behind_a_cut(void **state)
{
	const struct stream_handler handler = { .record = on_record };
	struct world *w = calloc(1, sizeof(*w)), *head = calloc(1, sizeof(*head));
	struct stream_writer_options o = {
		.ctx = w, .write = sink, .codec = &stream_zstd, .chunk_bytes = 4096
	};
	struct stream_handler h = handler;
	struct stream_writer *writer, *of_state;
	struct stream_reader *r;
	struct stream_cut cut = { 0 };
	u64 cut_bytes = 0, cut_chunks = 0;
	u32 seed = 1;

	(void)state;
	assert_true(w && head);
	assert_int_equal(stream_writer_new(&writer, &o), 0);
	o.ctx = head;
	assert_int_equal(stream_writer_new(&of_state, &o), 0);
	begin(writer);
	for (u32 i = 0; i < NR_EVENTS; i++) {
		if (i == NR_EVENTS / 2) {
			assert_int_equal(stream_cut(writer, &cut), 0);
			cut_bytes = w->nr;
			cut_chunks = w->nr_chunks;
			begin(of_state);
			assert_int_equal(stream_write_functions(of_state, writer), 0);
		}
		w->written[i] = any_event(writer, &seed, 2000 + 100 * (u64)i);
		assert_int_equal(stream_write_event(writer, &w->written[i].h, sizeof(w->written[i])), 0);
	}
	put(writer, STREAM_END, &(struct stream_end){ .time_ns = 5 });
	put(of_state, STREAM_END, &(struct stream_end){ .reason = STREAM_END_PART });
	assert_int_equal(stream_flush(writer) | stream_flush(of_state), 0);

	h.ctx = w;
	assert_int_equal(stream_reader_new(&r, &h, &stream_zstd), 0);
	assert_int_equal(stream_feed(r, w->bytes, w->nr), 0);
	assert_int_equal(stream_finish(r), 0);
	assert_int_equal(w->nr_seen, NR_EVENTS);
	assert_memory_equal(w->seen, w->written, sizeof(w->written));

	w->nr_seen = 0;
	stream_reader_restart(r);
	assert_int_equal(stream_feed(r, head->bytes, head->nr), 0);
	assert_int_equal(stream_reader_resume(r, &cut, cut_chunks, cut_bytes), 0);
	assert_int_equal(stream_feed(r, w->bytes + cut_bytes, w->nr - cut_bytes), 0);
	assert_int_equal(stream_finish(r), 0);
	assert_int_equal(w->nr_seen, NR_EVENTS - NR_EVENTS / 2);
	assert_memory_equal(w->seen, w->written + NR_EVENTS / 2, w->nr_seen * sizeof(w->seen[0]));
	stream_reader_free(r);
	stream_writer_free(writer);
	stream_writer_free(of_state);
	free(head);
	free(w);
}

/* A state without its end, and a number of stacks that no recording has. */
static void states_that_cannot_be(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	const struct stream_handler h = { .ctx = w, .record = on_record };
	const struct stream_writer_options o = { .ctx = w, .write = sink };
	struct stream_cut cut = { .nr_stacks = STACK_FIRST_ID };
	struct stream_writer *writer;
	struct stream_reader *r;

	(void)state;
	assert_non_null(w);
	assert_int_equal(stream_writer_new(&writer, &o), 0);
	assert_int_equal(stream_reader_new(&r, &h, &stream_zstd), 0);
	begin(writer);
	assert_int_equal(stream_flush(writer), 0);
	assert_int_equal(stream_feed(r, w->bytes, w->nr), 0);
	assert_int_equal(stream_reader_resume(r, &cut, 1, 100), -EBADMSG);
	put(writer, STREAM_END, &(struct stream_end){ .reason = STREAM_END_PART });
	assert_int_equal(stream_flush(writer), 0);
	for (u64 nr = 0; nr < 3; nr++) {
		cut.nr_stacks = nr < 2 ? nr : STREAM_MAX_STACKS + 3ULL;
		stream_reader_restart(r);
		assert_int_equal(stream_feed(r, w->bytes, w->nr), 0);
		assert_int_equal(stream_reader_resume(r, &cut, 1, 100), -EBADMSG);
	}
	stream_reader_free(r);
	stream_writer_free(writer);
	free(w);
}

static void heads(void **state)
{
	static u8 bytes[SEEK_MAX_BYTES];
	static struct seek_head full = { .cut = { ~0ULL, ~0ULL, STREAM_MAX_STACKS }, .time_ns = ~0ULL };
	static struct seek_head back;
	size_t len = seek_put(bytes, &good);

	(void)state;
	assert_true(seek_get(&back, bytes, len));
	assert_true(back.cut.time == 7 && back.cut.addr == 0x1000 && back.cut.nr_stacks == 9);
	assert_true(back.time_ns == 500 && back.start_ns == 100 && back.has_all && back.nr_marks == 1);
	assert_true(back.marks[0].time_ns == 300);
	assert_string_equal(back.marks[0].name, "one");
	for (size_t i = 0; i < len; i++)
		assert_false(seek_get(&back, bytes, i));
	full.start_ns = ~0ULL;
	full.nr_marks = SEEK_MAX_MARKS;
	for (u32 i = 0; i < SEEK_MAX_MARKS; i++) {
		full.marks[i].time_ns = ~0ULL;
		memset(full.marks[i].name, 'x', SEEK_NAME_LEN - 1);
	}
	len = seek_put(bytes, &full);
	assert_true(len <= sizeof(bytes));
	assert_true(seek_get(&back, bytes, len));
	assert_memory_equal(back.marks, full.marks, sizeof(full.marks));
	full.start_ns = 5;
	full.time_ns = 4;
	assert_false(seek_get(&back, bytes, seek_put(bytes, &full)));
	full.time_ns = 6;
	full.cut.nr_stacks = STREAM_MAX_STACKS + 3ULL;
	assert_false(seek_get(&back, bytes, seek_put(bytes, &full)));
}

/* Append a chunk to @fd. Returns the byte behind it. */
static u64 add_chunk(int fd, u8 kind, u32 number, const void *data, size_t len)
{
	u8 bytes[STREAM_HEADER_LEN + SEEK_MAX_BYTES] = { 0 };

	le32_put(bytes + 4, (u32)len);
	le32_put(bytes + 8, (u32)len);
	le32_put(bytes + 12, number);
	bytes[16] = kind;
	memcpy(bytes + STREAM_HEADER_LEN, data, len);
	le32_put(bytes, crc32c(0, bytes + 4, STREAM_HEADER_LEN - 4 + len));
	assert_int_equal(write(fd, bytes, STREAM_HEADER_LEN + len), STREAM_HEADER_LEN + len);
	return (u64)lseek(fd, 0, SEEK_CUR);
}

static void turn(int fd, u64 at)
{
	u8 byte;

	assert_int_equal(pread(fd, &byte, 1, (off_t)at), 1);
	byte ^= 1;
	assert_int_equal(pwrite(fd, &byte, 1, (off_t)at), 1);
}

static int collect(void *ctx, const void *data, size_t len)
{
	char *text = ctx;

	strncat(text, data, len);
	return 0;
}

/* By time and by name: the last seek point before the moment; none from the damaged one on. */
static void finding(void **state)
{
	int fd = memfd_create("seek", MFD_CLOEXEC);
	u8 bytes[256] = { 0 };
	struct seek_head head = good;
	struct seek_point p;
	struct span span;
	const char *why;
	char text[64] = "";
	u64 first, second, state_at;

	(void)state;
	assert_int_equal(write(fd, bytes, STREAM_PREAMBLE_LEN), STREAM_PREAMBLE_LEN);
	state_at = add_chunk(fd, STREAM_CHUNK_RECORDS, 0, "xyz", 3);
	add_chunk(fd, STREAM_CHUNK_STATE, 1, "sta", 3);
	add_chunk(fd, STREAM_CHUNK_STATE, 2, "ir", 2);
	head.nr_marks = 0;
	first = add_chunk(fd, STREAM_CHUNK_SEEK, 3, bytes, seek_put(bytes, &head));
	add_chunk(fd, STREAM_CHUNK_RECORDS, 4, "xyz", 3);
	/* Without a state before it this is none. */
	add_chunk(fd, STREAM_CHUNK_SEEK, 5, bytes, seek_put(bytes, &head));
	add_chunk(fd, STREAM_CHUNK_STATE, 6, "more", 4);
	head = good;
	head.time_ns = 900;
	second = add_chunk(fd, STREAM_CHUNK_SEEK, 7, bytes, seek_put(bytes, &head));

	assert_int_equal(span_parse(&span, "1s,2s", &why), 0);
	assert_true(seek_find(fd, &span, &p));
	assert_true(p.offset == second && p.number == 8 && p.start_ns == 100);
	span.marks[SPAN_FROM].ns = 800;
	assert_true(seek_find(fd, &span, &p));
	assert_true(p.offset == first && p.number == 4 && p.state == state_at && p.cut.nr_stacks == 9);
	assert_int_equal(seek_read_state(fd, &p, collect, text), 0);
	assert_string_equal(text, "stair");
	span.marks[SPAN_FROM].ns = 400;
	assert_false(seek_find(fd, &span, &p));
	assert_int_equal(span_parse(&span, "one,end", &why), 0);
	assert_true(seek_find(fd, &span, &p));
	assert_true(p.offset == first);
	assert_int_equal(span_parse(&span, "two,end", &why), 0);
	assert_true(seek_find(fd, &span, &p));
	assert_true(p.offset == second);

	turn(fd, second - 1);
	assert_true(seek_find(fd, &span, &p));
	assert_true(p.offset == first);
	turn(fd, state_at + STREAM_HEADER_LEN);
	assert_true(seek_find(fd, &span, &p));
	assert_int_equal(seek_read_state(fd, &p, collect, text), -EBADMSG);
	turn(fd, first - 1);
	assert_false(seek_find(fd, &span, &p));
	for (off_t len = (off_t)second; len-- > 0;) {
		assert_int_equal(ftruncate(fd, len), 0);
		assert_false(seek_find(fd, &span, &p));
	}
	close(fd);
}

/* The more blocks are live, the further apart seek points are. */
static void worth(void **state)
{
	(void)state;
	assert_true(seek_is_worth(0, 0));
	assert_true(seek_is_worth(4 << 20, 32768));
	assert_false(seek_is_worth(4 << 20, 32769));
	assert_false(seek_is_worth(127000000, 1000000));
	assert_true(seek_is_worth(128000000, 1000000));
	assert_true(seek_is_worth(2048000000, 16000000));
	assert_false(seek_is_worth(UINT64_MAX, 16000001));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(events_behind_a_cut),
		cmocka_unit_test(states_that_cannot_be),
		cmocka_unit_test(heads),
		cmocka_unit_test(finding),
		cmocka_unit_test(worth),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

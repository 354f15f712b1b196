/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The bytes of a stream stay as they are: recordings of earlier releases must be readable. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "user/lib/crc32c.h"
#include "user/target/allocator.h"
#include "user/stream/stream_read.h"
#include "user/stream/stream_write.h"

/* Bytes in format 1, before there were guesses: all readers read them. */
static const u8 wanted[] = {
	0x89, 0x48, 0x54, 0x41, 0x50, 0x0d, 0x0a, 0x1a, 0x01, 0x00, 0x00, 0x00, 0x63, 0x18, 0x96, 0x75, 0xa6,
	0xe2, 0xbc, 0x87, 0x4f, 0x02, 0x00, 0x00, 0x4f, 0x02, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x00,
	0x00, 0x00, 0x00, 0x01, 0x3c, 0x88, 0xef, 0x99, 0xab, 0xc5, 0xe8, 0x8c, 0x91, 0x11, 0x01, 0x01, 0x00,
	0x04, 0xc0, 0x84, 0x3d, 0x80, 0x80, 0xa8, 0xb1, 0xe3, 0x9f, 0xe7, 0xcb, 0x17, 0xbf, 0x84, 0x3d, 0x20,
	0x01, 0x0d, 0x68, 0x65, 0x61, 0x70, 0x74, 0x61, 0x70, 0x20, 0x30, 0x2e, 0x31, 0x2e, 0x30, 0x03, 0x62,
	0x70, 0x66, 0x06, 0x78, 0x38, 0x36, 0x5f, 0x36, 0x34, 0x03, 0x36, 0x2e, 0x31, 0x00, 0x00, 0x05, 0x1e,
	0x05, 0x01, 0xe8, 0x07, 0x01, 0x08, 0x00, 0xc1, 0x84, 0x3d, 0x4d, 0x04, 0x6d, 0x61, 0x6b, 0x65, 0x0d,
	0x2f, 0x75, 0x73, 0x72, 0x2f, 0x62, 0x69, 0x6e, 0x2f, 0x6d, 0x61, 0x6b, 0x65, 0x00, 0x06, 0x1b, 0x01,
	0x00, 0x03, 0x04, 0x04, 0x01, 0x02, 0x03, 0x04, 0x0e, 0x2f, 0x6c, 0x69, 0x62, 0x2f, 0x6c, 0x69, 0x62,
	0x63, 0x2e, 0x73, 0x6f, 0x2e, 0x36, 0x02, 0x2f, 0x63, 0x00, 0x07, 0x03, 0x05, 0x01, 0x01, 0x00, 0x08,
	0x17, 0x80, 0x80, 0x80, 0x80, 0x80, 0xe0, 0x1f, 0x80, 0x80, 0x80, 0x81, 0x80, 0xe0, 0x1f, 0x00, 0x80,
	0x80, 0x80, 0x80, 0x80, 0xe0, 0x1f, 0x01, 0x00, 0x09, 0x08, 0x05, 0x01, 0x05, 0x67, 0x6c, 0x69, 0x62,
	0x63, 0x00, 0x0a, 0x09, 0x05, 0x06, 0x06, 0x77, 0x6f, 0x72, 0x6b, 0x65, 0x72, 0x00, 0x04, 0x15, 0x05,
	0x02, 0x00, 0x03, 0x00, 0x80, 0xcc, 0x80, 0x04, 0xff, 0x03, 0xff, 0x03, 0x00, 0x10, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x04, 0x0f, 0x05, 0x02, 0x00, 0x03, 0x02, 0xff, 0x01, 0x00, 0x20, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x11, 0x01, 0x00, 0x00, 0x06, 0x6d, 0x61, 0x6c, 0x6c, 0x6f, 0x63,
	0x06, 0x6d, 0x61, 0x6c, 0x6c, 0x6f, 0x63, 0x00, 0x03, 0x03, 0x00, 0x05, 0x05, 0xe9, 0x06, 0x00, 0x84,
	0x80, 0x80, 0x80, 0xd4, 0xaa, 0x05, 0x02, 0x01, 0x10, 0x00, 0x03, 0x03, 0x01, 0x05, 0x06, 0x09, 0x06,
	0x01, 0x08, 0xe1, 0x06, 0x08, 0x03, 0x01, 0x80, 0x20, 0x00, 0x02, 0x11, 0x02, 0x00, 0x00, 0x06, 0x63,
	0x61, 0x6c, 0x6c, 0x6f, 0x63, 0x06, 0x63, 0x61, 0x6c, 0x6c, 0x6f, 0x63, 0x5a, 0x07, 0x00, 0x03, 0x02,
	0x13, 0x06, 0x03, 0x00, 0x02, 0x13, 0x03, 0x01, 0x00, 0x07, 0x72, 0x65, 0x61, 0x6c, 0x6c, 0x6f, 0x63,
	0x07, 0x72, 0x65, 0x61, 0x6c, 0x6c, 0x6f, 0x63, 0xd4, 0x06, 0x03, 0x03, 0x40, 0x05, 0x06, 0x10, 0xed,
	0x07, 0x01, 0x08, 0x02, 0x03, 0x18, 0x07, 0x01, 0x02, 0x06, 0x01, 0x01, 0xd1, 0x81, 0x80, 0x80, 0xd0,
	0xaa, 0x15, 0x00, 0x08, 0x02, 0xe1, 0x06, 0x10, 0x01, 0x01, 0x08, 0x00, 0x0c, 0x08, 0x05, 0x05, 0x80,
	0x89, 0x7a, 0x09, 0x00, 0x00, 0x00, 0x0b, 0x08, 0x09, 0x09, 0x8a, 0x89, 0x7a, 0x00, 0x00, 0x00, 0x00,
	0x0d, 0x09, 0x09, 0x09, 0x94, 0x89, 0x7a, 0x00, 0x80, 0x02, 0x00, 0x00, 0x0e, 0x0e, 0x05, 0x01, 0x01,
	0x02, 0x03, 0x04, 0x02, 0x00, 0x00, 0x01, 0x01, 0x00, 0x03, 0x00, 0x00, 0x0f, 0x33, 0x05, 0x03, 0xc0,
	0xc4, 0x07, 0x00, 0x80, 0x80, 0x40, 0x00, 0x00, 0x00, 0x01, 0x10, 0x02, 0x20, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x10, 0x10,
	0x02, 0x01, 0x01, 0x10, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x11, 0x06, 0x02, 0x01, 0x03, 0x01, 0x01, 0x08, 0x00, 0x12, 0x27, 0x02, 0x01, 0x02, 0x00, 0x08, 0x01,
	0x90, 0x80, 0x80, 0x80, 0xd0, 0xaa, 0x15, 0x88, 0x80, 0x80, 0x80, 0xe0, 0xff, 0x1f, 0x00, 0x00, 0x00,
	0x01, 0x00, 0x0d, 0x2f, 0x75, 0x73, 0x72, 0x2f, 0x62, 0x69, 0x6e, 0x2f, 0x6d, 0x61, 0x6b, 0x65, 0x00,
	0x13, 0x0d, 0x90, 0x80, 0x80, 0x80, 0xd0, 0xaa, 0x15, 0x10, 0x08, 0x01, 0x02, 0x01, 0x02, 0x00, 0x14,
	0x01, 0x05, 0x00, 0x15, 0x0d, 0xc0, 0x8d, 0xb7, 0x01, 0x00, 0x04, 0x77, 0x61, 0x72, 0x6d, 0x00, 0x00,
	0x00, 0x00, 0x16, 0x0b, 0x80, 0x92, 0xf4, 0x01, 0xc0, 0x8d, 0xb7, 0x01, 0x00, 0x09, 0x00,
};

struct written {
	u8 bytes[4096];
	size_t nr;
};

static int sink(void *ctx, const void *data, size_t len)
{
	struct written *w = ctx;

	if (len > sizeof(w->bytes) - w->nr)
		return -ENOSPC;
	memcpy(w->bytes + w->nr, data, len);
	w->nr += len;
	return 0;
}

enum { FIRST_STACK = 0x1000, SECOND_STACK = 0x2000 };

static const struct stream_hello hello = { .id = 0x1122334455667788,
					   .part = 1,
					   .role = STREAM_ROLE_TARGET,
					   .time_shift = 4,
					   .mono_ns = 1000000,
					   .real_ns = 1700000000000000000,
					   .start_ns = 999999,
					   .depth = 32,
					   .wants_scan = 1,
					   .producer = "heaptap 0.1.0",
					   .backend = "bpf",
					   .machine = "x86_64",
					   .release = "6.1" };
static const struct stream_process process = { .pid = 5,
					       .ppid = 1,
					       .uid = 1000,
					       .flags = STREAM_STARTED,
					       .word_size = 8,
					       .time_ns = 1000001,
					       .start_time = 77,
					       .comm = "make",
					       .exe = "/usr/bin/make" };
static const struct stream_module module = { .module = 1,
					     .dev = 3,
					     .ino = 4,
					     .build_id = { 1, 2, 3, 4 },
					     .build_id_len = 4,
					     .path = "/lib/libc.so.6",
					     .link = "/c" };
static const struct stream_losses losses = { .pid = 5,
					     .flags = STREAM_TAINT,
					     .l.allocs = 1,
					     .l.frees = 2,
					     .l.stacks = 3,
					     .l.other = 4,
					     .l.abandoned = 2,
					     .l.overwritten = 1,
					     .l.tracers = 1,
					     .l.late = 3 };
static const struct stream_scan scan = { .pid = 5,
					 .flags = STREAM_SCAN_VERDICT | STREAM_SCAN_COMPLETE,
					 .word_size = 8,
					 .pause_ns = 123456,
					 .scanned_bytes = 1 << 20,
					 .sums = { { { 1, 16 }, { 2, 32 } } },
					 .why = "" };
static const struct stream_scan_why why = { .stack = STACK_FIRST_ID,
					    .fn = 1,
					    .flags = STREAM_WHY_HAS_ROW,
					    .word_size = 8,
					    .root = 1,
					    .addr = 0x555500000010,
					    .root_addr = 0x7ffe00000008,
					    .nr_steps = 1,
					    .root_path = "/usr/bin/make" };

/* Records with a body; the table of user/stream/stream_layout.c says how they are written. */
static const struct {
	enum stream_kind kind;
	const void *rec;
} before_events[] = {
	{ STREAM_HELLO, &hello },
	{ STREAM_PROCESS, &process },
	{ STREAM_MODULE, &module },
	{ STREAM_MAPS, &(const struct stream_maps){ 5, 1, 1 } },
	{ STREAM_MAPPING, &(const struct stream_mapping){ 0x7f0000000000, 0x7f0000200000, 0, 0x7f0000000000, 1 } },
	{ STREAM_ALLOCATOR, &(const struct stream_allocator){ 5, 1, "glibc" } },
	{ STREAM_THREAD, &(const struct stream_thread){ 5, 6, "worker" } },
}, after_events[] = {
	{ STREAM_LOSSES, &losses },
	{ STREAM_SCAN, &scan },
	{ STREAM_SCAN_ROW, &(const struct stream_scan_row){ STACK_FIRST_ID, 1, { { { 1, 16 } } }, { 0, 0 } } },
	{ STREAM_SCAN_LINK,
	  &(const struct stream_scan_link){ STACK_FIRST_ID, STACK_FIRST_ID + 1, 1, 1, { 1, 8 } } },
	{ STREAM_SCAN_WHY, &why },
	{ STREAM_SCAN_STEP,
	  &(const struct stream_scan_step){ 0x555500000010, 16, 8, 1, STACK_FIRST_ID, 1, STREAM_WHY_HAS_ROW } },
	{ STREAM_SCAN_END, &(const struct stream_pid){ 5 } },
	{ STREAM_MARK, &(const struct stream_mark_record){ 3000000, STREAM_MARK_USER, "warm" } },
	{ STREAM_END, &(const struct stream_end){ 4000000, 3000000, STREAM_END_DONE, 9, "" } },
};

/* Heap events in each of their forms, in order of time. */
static const struct heap_event events[] = {
	{ .h = { EVENT_ALLOC, 0, 1, 5, 5 }, 1000100, 0x555500000010, { 0 }, 16, FIRST_STACK },
	{ .h = { EVENT_ALLOC, 0, 1, 5, 6 }, 1000200, 0x555500000030, { 0 }, 16, FIRST_STACK },
	{ .h = { EVENT_ALLOC, 0, 1, 5, 6 }, 1000300, 0x555500000050, { 0 }, 4096, SECOND_STACK },
	{ .h = { EVENT_FREE, 0, 2, 5, 5 }, 1000400, 0x555500000010, { 0 }, 0, 0 },
	{ .h = { EVENT_FREE, EVENT_TEMPORARY, 2, 5, 5 }, 1000500, 0x555500000030, { 0 }, 0, 0 },
	{ .h = { EVENT_REALLOC_BEGIN, 0, 3, 5, 5 }, 1000600, 0, { 0x555500000050 }, 64, SECOND_STACK },
	{ .h = { EVENT_REALLOC_END, 0, 3, 5, 5 },
	  1000700,
	  0x555500000090,
	  { 0x555500000050 },
	  64,
	  SECOND_STACK },
	{ .h = { EVENT_REALLOC_END, 0, 3, 5, 6 }, 1000800, 0x5555000000b0, { 0 }, 24, FIRST_STACK },
	{ .h = { EVENT_ALLOC, EVENT_RETRY, 1, 5, 6 }, 1000900, 0x5555000000d1, { 0 }, 8, FIRST_STACK },
	{ .h = { EVENT_ALLOC, 0, 1, 5, 6 }, 1001000, 0x5555000000f0, { 0 }, 8, 0x3000 },
};

static const struct process_event lives[] = {
	{ .h = { EVENT_FORK, 0, 0, 5, 5 }, .time_ns = 2000000, .child_pid = 9 },
	{ .h = { EVENT_EXEC, 0, 0, 9, 9 }, .time_ns = 2000010 },
	{ .h = { EVENT_EXIT, 0, 0, 9, 9 }, .time_ns = 2000020, .exit_status = 256 },
};

static void write_stack(struct stream_writer *w, u64 id, u64 innermost)
{
	struct stack_event ev = { .h = { EVENT_STACK, 0, 0, 5, 5 },
				  .id = id,
				  .epoch = 2,
				  .nr_frames = 3,
				  .ips = { innermost, 0x401200, 0x401300 } };

	assert_int_equal(stream_write_event(w, &ev.h, sizeof(ev)), 0);
}

static void write_all(struct written *out)
{
	const struct stream_writer_options o = { .ctx = out, .write = sink };
	struct stream_writer *w;

	assert_int_equal(stream_writer_new(&w, &o), 0);
	for (size_t i = 0; i < ARRAY_SIZE(before_events); i++)
		assert_int_equal(stream_write(w, before_events[i].kind, before_events[i].rec), 0);
	write_stack(w, FIRST_STACK, 0x401100);
	write_stack(w, SECOND_STACK, 0x401180);
	for (size_t i = 0; i < ARRAY_SIZE(events); i++)
		assert_int_equal(stream_write_event(w, &events[i].h, sizeof(events[i])), 0);
	for (size_t i = 0; i < ARRAY_SIZE(lives); i++)
		assert_int_equal(stream_write_event(w, &lives[i].h, sizeof(lives[i])), 0);
	for (size_t i = 0; i < ARRAY_SIZE(after_events); i++)
		assert_int_equal(stream_write(w, after_events[i].kind, after_events[i].rec), 0);
	assert_int_equal(stream_flush(w), 0);
	stream_writer_free(w);
}

/* Of the bytes that are written now: if write_all() writes others, the format has changed. */
enum { NOW_BYTES = 631 };
static const u32 now_crc = 0x555ba537;

/* Print the bytes as C if the format changes on purpose. */
static void print_bytes(const struct written *w)
{
	for (size_t i = 0; i < w->nr; i++)
		fprintf(stderr, "%s0x%02x,", i % 16 ? " " : "\n\t", w->bytes[i]);
	fputc('\n', stderr);
}

static void writes_the_same_bytes(void **state)
{
	struct written w = { .nr = 0 };

	(void)state;
	write_all(&w);
	if (w.nr != NOW_BYTES || crc32c(0, w.bytes, w.nr) != now_crc)
		print_bytes(&w);
	assert_int_equal(w.nr, NOW_BYTES);
	assert_int_equal(crc32c(0, w.bytes, w.nr), now_crc);
}

struct seen {
	size_t nr_events, nr_lives, nr_stacks;
	size_t nr[NR_STREAM_KINDS];
};

/* Times of heap events lose their lowest bits, hello.time_shift of them; a stack that never came is lost. */
static void check_event(const struct heap_event *ev, const struct heap_event *in)
{
	assert_int_equal(ev->h.kind, in->h.kind);
	assert_int_equal(ev->h.flags, in->h.flags);
	assert_int_equal(ev->h.fn, in->h.fn);
	assert_int_equal(ev->h.pid, in->h.pid);
	assert_int_equal(ev->h.tid, in->h.tid);
	assert_int_equal(ev->time_ns, in->time_ns >> hello.time_shift << hello.time_shift);
	assert_int_equal(ev->addr, in->addr);
	assert_int_equal(ev->old_addr, in->old_addr);
	assert_int_equal(ev->size, in->size);
	assert_int_equal(ev->stack, in->stack == 0x3000 ? STACK_LOST : in->stack);
}

static int on_record(void *ctx, enum stream_kind kind, const void *rec)
{
	struct seen *s = ctx;
	const struct stream_process *p = rec;
	const struct stream_losses *l = rec;
	const struct stack_event *stack = rec;
	const struct process_event *life = rec;
	const struct stream_scan_why *w = rec;

	s->nr[kind]++;
	switch (kind) {
	case STREAM_PROCESS:
		assert_string_equal(p->exe, process.exe);
		assert_int_equal(p->start_time, process.start_time);
		break;
	case STREAM_LOSSES:
		assert_int_equal(l->l.other, losses.l.other);
		assert_int_equal(l->l.abandoned, losses.l.abandoned);
		assert_int_equal(l->l.overwritten, losses.l.overwritten);
		assert_int_equal(l->l.tracers, losses.l.tracers);
		assert_int_equal(l->l.late, losses.l.late);
		break;
	case STREAM_STACK:
		assert_int_equal(stack->id, s->nr_stacks++ ? SECOND_STACK : FIRST_STACK);
		assert_int_equal(stack->nr_frames, 3);
		assert_int_equal(stack->ips[2], 0x401300);
		break;
	case STREAM_EVENT:
		check_event(rec, &events[s->nr_events++]);
		break;
	case STREAM_FORK:
	case STREAM_EXEC:
	case STREAM_EXIT:
		assert_memory_equal(life, &lives[s->nr_lives++], sizeof(*life));
		break;
	case STREAM_SCAN_WHY:
		assert_int_equal(w->stack, FIRST_STACK);
		assert_string_equal(w->root_path, why.root_path);
		break;
	default:
		break;
	}
	return 0;
}

static void reads_them(void **state)
{
	struct seen s = { .nr_events = 0 };
	const struct stream_handler handler = { .ctx = &s, .record = on_record };
	struct stream_reader *r;

	(void)state;
	assert_int_equal(stream_reader_new(&r, &handler, NULL), 0);
	assert_int_equal(stream_feed(r, wanted, sizeof(wanted)), 0);
	assert_int_equal(stream_finish(r), 0);
	stream_reader_free(r);
	assert_int_equal(s.nr_events, ARRAY_SIZE(events));
	assert_int_equal(s.nr_lives, ARRAY_SIZE(lives));
	assert_int_equal(s.nr_stacks, 2);
	for (size_t i = 0; i < ARRAY_SIZE(before_events); i++)
		assert_int_equal(s.nr[before_events[i].kind], 1);
	for (size_t i = 0; i < ARRAY_SIZE(after_events); i++)
		assert_int_equal(s.nr[after_events[i].kind], 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(writes_the_same_bytes),
		cmocka_unit_test(reads_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of lists of events: what a text says comes out as a stream, and a bad text gives one clear error. */
#include "user/stream/event_list_read.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "user/stream/stream_layout.h"
#include "user/stream/stream_read.h"

enum { MAX_RECORDS = 100 };

struct seen {
	enum stream_kind kind;
	union {
		union stream_any any;
		struct heap_event heap;
		struct stack_event stack;
	} rec;
	char texts[3][32];
};

/* The records of a list. */
struct list {
	struct event_list_reader *reader;
	struct stream_reader *stream;
	struct seen seen[MAX_RECORDS];
	size_t nr;
	size_t nr_left; /* records until the handler fails; 0 = never */
};

static void keep_text(char out[32], const char *text)
{
	snprintf(out, 32, "%s", text);
}

static int see(void *ctx, enum stream_kind kind, const void *rec)
{
	struct list *l = ctx;
	struct seen *s = &l->seen[l->nr % MAX_RECORDS];
	const union stream_any *any = rec;

	/* Each stream has a beginning and an end. */
	if (kind == STREAM_END || (kind == STREAM_HELLO && !any->hello.sample_bytes))
		return 0;
	memset(s, 0, sizeof(*s));
	s->kind = kind;
	if (kind == STREAM_EVENT) {
		s->rec.heap = *(const struct heap_event *)rec;
	} else if (kind == STREAM_STACK) {
		s->rec.stack = *(const struct stack_event *)rec;
	} else if (kind == STREAM_PROCESS) {
		s->rec.any.process = any->process;
		keep_text(s->texts[0], any->process.comm);
		keep_text(s->texts[1], any->process.exe);
	} else if (kind == STREAM_MODULE) {
		s->rec.any.module = any->module;
		keep_text(s->texts[0], any->module.path);
	} else if (kind == STREAM_FUNCTION) {
		s->rec.any.function = any->function;
		keep_text(s->texts[0], any->function.symbol);
		keep_text(s->texts[1], any->function.name);
	} else if (kind == STREAM_LOSSES) {
		s->rec.any.losses = any->losses;
	} else if (kind == STREAM_MAPS) {
		s->rec.any.maps = any->maps;
	} else if (kind == STREAM_MAPPING) {
		s->rec.any.mapping = any->mapping;
	} else if (kind == STREAM_ALLOCATOR) {
		s->rec.any.allocator = any->allocator;
		keep_text(s->texts[0], any->allocator.kind);
	} else if (kind == STREAM_MARK) {
		s->rec.any.mark = any->mark;
		keep_text(s->texts[0], any->mark.text);
	} else if (kind == STREAM_HELLO) {
		s->rec.any.hello = any->hello;
	} else if (kind == STREAM_THREAD) {
		s->rec.any.thread = any->thread;
		keep_text(s->texts[0], any->thread.comm);
	} else {
		assert_true(kind == STREAM_EXEC || kind == STREAM_FORK || kind == STREAM_EXIT);
		s->rec.any.life = any->life;
	}
	l->nr++;
	return l->nr == l->nr_left ? -EIO : 0;
}

static int feed_stream(void *ctx, const void *data, size_t len)
{
	const struct list *l = ctx;

	return stream_feed(l->stream, data, len);
}

static void close_list(struct list *l)
{
	stream_reader_free(l->stream);
	event_list_reader_free(l->reader);
	l->stream = NULL;
	l->reader = NULL;
}

/* The reason is that of the list, or that of the reader of the stream, and never both. */
static const char *why_of(const struct list *l)
{
	const char *why = event_list_why(l->reader);

	assert_true(!*why || !*stream_why(l->stream));
	return *why ? why : stream_why(l->stream);
}

/* Read @len bytes of @text in portions of @portion. */
static int read_portions(struct list *l, const char *text, size_t len, size_t portion)
{
	const struct event_list_sink sink = { l, feed_stream };
	struct stream_handler handler = { .ctx = l, .record = see };
	int err = 0;

	l->nr = 0;
	assert_int_equal(event_list_reader_new(&l->reader, &sink), 0);
	handler.line = event_list_line(l->reader);
	assert_int_equal(stream_reader_new(&l->stream, &handler, NULL), 0);
	for (size_t at = 0; at < len && !err; at += portion)
		err = event_list_feed(l->reader, text + at, len - at < portion ? len - at : portion);
	if (!err)
		err = event_list_end(l->reader);
	return err ? err : stream_finish(l->stream);
}

static int read_text(struct list *l, const char *text)
{
	return read_portions(l, text, strlen(text), 4096);
}

static const char *const good = "# all kinds of lines\n"
				"process 10 prog /usr/bin/prog started\n"
				"process 11 a-name-longer-than-15 -\n"
				"\n"
				"map 10 0x5000 0x6000 0x4000 /no/such/lib.so 0a1bff\n"
				"map 10 0x1000 0x2000 0x1000 /no/such/prog\n"
				"map 10 0x7000 0x8000 0 -\r\n"
				"map 11 0x9000 0xa000 0x8000 /no/such/lib.so 0a1bff\n"
				"stack 2 10 no-unwind-info 0x5010 0x1020\n"
				"  alloc  10 100\tmalloc 0x10 24 2 align=64\n"
				"alloc 11 110 _Znwm 0x20 010 0 5000 retry\n"
				"free 10 100 free 0x10 1 temporary size=24 align=0\n"
				"realloc-begin 10 101 realloc 0x30 99 0 6000\n"
				"realloc-end 10 101 realloc 0x30 0x40 99 0\n"
				"lost 10 1 2 3 4\n"
				"unmap 11 110 munmap 0x1000 4096 0\n"
				"allocator 10 glibc /no/such/lib.so\n"
				"function 0 4 my_alloc my-alloc\n"
				"alloc 10 1 my_alloc 0x50 8 1\n"
				"exec 10 new\\x20name /new\\\\path\n"
				"mark 6500 half\\x20way\n"
				"thread 10 100 worker\n"
				"fork 10 11 7000\n"
				"exit 10 256"; /* no newline at the end */

/* The records of the kinds @kinds, in order. */
static void has_kinds(const struct list *l, const enum stream_kind *kinds, size_t nr)
{
	assert_int_equal(l->nr, nr);
	for (size_t i = 0; i < nr; i++)
		assert_int_equal(l->seen[i].kind, kinds[i]);
}

static const enum stream_kind good_kinds[] = {
	STREAM_PROCESS,	 STREAM_PROCESS,  STREAM_MODULE, STREAM_MODULE,	  STREAM_MAPS,	STREAM_MAPPING,
	STREAM_MAPPING,	 STREAM_MAPPING,  STREAM_STACK,	 STREAM_FUNCTION, STREAM_EVENT, STREAM_MAPS,
	STREAM_MAPPING,	 STREAM_FUNCTION, STREAM_EVENT,	 STREAM_FUNCTION, STREAM_EVENT, STREAM_FUNCTION,
	STREAM_EVENT,	 STREAM_EVENT,	  STREAM_LOSSES, STREAM_FUNCTION, STREAM_EVENT, STREAM_ALLOCATOR,
	STREAM_FUNCTION, STREAM_EVENT,	  STREAM_EXEC,	 STREAM_PROCESS,  STREAM_MARK,	STREAM_THREAD,
	STREAM_FORK,	 STREAM_EXIT,
};

static void test_processes(void **state)
{
	struct list *l = *state;
	const struct seen *s = l->seen;

	assert_int_equal(read_text(l, good), 0);
	has_kinds(l, good_kinds, ARRAY_SIZE(good_kinds));
	assert_int_equal(s[0].rec.any.process.pid, 10);
	assert_int_equal(s[0].rec.any.process.flags, STREAM_STARTED);
	assert_string_equal(s[0].texts[0], "prog");
	assert_string_equal(s[0].texts[1], "/usr/bin/prog");
	assert_string_equal(s[1].texts[0], "a-name-longer-than-15");
	assert_string_equal(s[1].texts[1], "");
	assert_int_equal(s[1].rec.any.process.flags, 0);
	assert_string_equal(s[2].texts[0], "/no/such/lib.so");
	assert_int_equal(s[2].rec.any.module.module, 1);
	assert_int_equal(s[2].rec.any.module.build_id_len, 3);
	assert_memory_equal(s[2].rec.any.module.build_id, "\x0a\x1b\xff", 3);
	assert_int_equal(s[4].rec.any.maps.nr, 3);
	assert_int_equal(s[5].rec.any.mapping.start, 0x1000);
	assert_int_equal(s[5].rec.any.mapping.module, 2);
	assert_int_equal(s[6].rec.any.mapping.start, 0x5000);
	assert_int_equal(s[6].rec.any.mapping.file_offset, 0x1000);
	assert_int_equal(s[7].rec.any.mapping.module, 0);
	assert_int_equal(s[11].rec.any.maps.pid, 11);
	assert_int_equal(s[12].rec.any.mapping.module, 1);
	assert_int_equal(s[23].rec.any.allocator.module, 1);
	assert_string_equal(s[23].texts[0], "glibc");
	/* The program of an exec began as its process did. */
	assert_string_equal(s[27].texts[0], "new name");
	assert_string_equal(s[27].texts[1], "/new\\path");
	assert_int_equal(s[27].rec.any.process.flags, STREAM_STARTED);
	assert_string_equal(s[28].texts[0], "half way");
	assert_int_equal(s[28].rec.any.mark.time_ns, 6500);
	assert_int_equal(s[29].rec.any.thread.tid, 100);
	assert_string_equal(s[29].texts[0], "worker");
	close_list(l);
}

static void test_records(void **state)
{
	struct list *l = *state;
	const struct seen *s = l->seen;

	assert_int_equal(read_text(l, good), 0);
	assert_int_equal(s[8].rec.stack.end, STACK_NO_INFO);
	assert_int_equal(s[8].rec.stack.nr_frames, 2);
	assert_int_equal(s[8].rec.stack.ips[1], 0x1020);
	assert_int_equal(s[10].rec.heap.h.kind, EVENT_ALLOC);
	assert_string_equal(s[9].texts[0], "malloc");
	assert_int_equal(s[10].rec.heap.h.fn, s[9].rec.any.function.fn);
	assert_int_equal(s[10].rec.heap.h.tid, 100);
	assert_int_equal(s[10].rec.heap.size, 24);
	assert_int_equal(s[10].rec.heap.stack, 2);
	assert_int_equal(s[10].rec.heap.alignment, 64);
	assert_int_equal(s[14].rec.heap.h.flags, EVENT_RETRY);
	assert_int_equal(s[14].rec.heap.size, 8);
	assert_int_equal(s[14].rec.heap.time_ns, 5000);
	assert_int_equal(s[16].rec.heap.h.flags, EVENT_TEMPORARY);
	assert_int_equal(s[16].rec.heap.size, 24);
	assert_int_equal(s[16].rec.heap.time_ns, 5001);
	assert_true(s[16].rec.heap.alignment == ALIGNMENT_ZERO);
	assert_int_equal(s[18].rec.heap.old_addr, 0x30);
	assert_int_equal(s[19].rec.heap.old_addr, 0x30);
	assert_int_equal(s[19].rec.heap.addr, 0x40);
	assert_int_equal(s[20].rec.any.losses.l.frees, 2);
	assert_int_equal(s[20].rec.any.losses.l.other, 4);
	assert_int_equal(s[20].rec.any.losses.flags, STREAM_TAINT | STREAM_GAPS);
	assert_int_equal(s[22].rec.heap.h.flags, EVENT_UNMAP);
	assert_int_equal(s[22].rec.heap.size, 4096);
	assert_string_equal(s[24].texts[1], "my-alloc");
	assert_int_equal(s[25].rec.heap.h.fn, s[24].rec.any.function.fn);
	assert_int_equal(s[30].rec.any.life.child_pid, 11);
	assert_int_equal(s[31].rec.any.life.exit_status, 256);
	assert_int_equal(s[31].rec.any.life.time_ns, 7001);
	close_list(l);
}

/* Losses are more and more; those that can be no free, and no result of a call, leave the books as they are. */
static void test_losses(void **state)
{
	struct list *l = *state;

	assert_int_equal(read_text(l, "process 7 a b\nlost 7 0 0 3 0\nlost 7 2 0 1 0\nlost 7 0 1 0 0\n"), 0);
	assert_int_equal(l->nr, 4);
	assert_int_equal(l->seen[1].rec.any.losses.flags, 0);
	assert_int_equal(l->seen[2].rec.any.losses.flags, STREAM_GAPS);
	assert_int_equal(l->seen[2].rec.any.losses.l.stacks, 4);
	assert_int_equal(l->seen[3].rec.any.losses.flags, STREAM_TAINT);
	assert_int_equal(l->seen[3].rec.any.losses.l.allocs, 2);
	close_list(l);
}

/* Mappings that no other line follows come at the end. */
static void test_late_mapping(void **state)
{
	static const enum stream_kind kinds[] = { STREAM_PROCESS, STREAM_MAPS, STREAM_MAPPING };
	struct list *l = *state;

	assert_int_equal(read_text(l, "process 7 a b\nmap 7 0x1000 0x2000 0 -"), 0);
	has_kinds(l, kinds, ARRAY_SIZE(kinds));
	close_list(l);
}

static void test_error_of_the_handler(void **state)
{
	struct list *l = *state;

	l->nr_left = 3;
	assert_int_equal(read_text(l, good), -EIO);
	assert_int_equal(l->nr, 3);
	assert_int_equal(event_list_feed(l->reader, "# more\n", 7), -EIO);
	assert_string_equal(why_of(l), "line 5: Input/output error");
	close_list(l);
}

/* A list of sampled blocks: each has its distance. */
static void test_samples(void **state)
{
	static const char text[] = "sample 4096\n"
				   "process 10 prog -\n"
				   "alloc 10 1 malloc 0x10 24 0 100 align=64 distance=76\n"
				   "realloc-end 10 1 realloc 0x10 0x20 99 0 200 unsampled\n"
				   "realloc-end 10 1 realloc 0x20 0x30 99 0 300 distance=255\n";
	static const enum stream_kind kinds[] = { STREAM_HELLO, STREAM_PROCESS,	 STREAM_FUNCTION,
						  STREAM_EVENT, STREAM_FUNCTION, STREAM_EVENT,
						  STREAM_EVENT };
	struct list *l = *state;

	assert_int_equal(read_text(l, text), 0);
	has_kinds(l, kinds, ARRAY_SIZE(kinds));
	assert_int_equal(l->seen[0].rec.any.hello.sample_bytes, 4096);
	assert_int_equal(l->seen[3].rec.heap.h.distance, 76);
	assert_int_equal(l->seen[3].rec.heap.alignment, 64);
	assert_int_equal(l->seen[5].rec.heap.h.flags, EVENT_UNSAMPLED);
	assert_int_equal(l->seen[5].rec.heap.h.distance, 0);
	assert_int_equal(l->seen[6].rec.heap.h.distance, 255);
	close_list(l);
}

/* @line, third after two good ones, is refused with @why. */
static void refuse(struct list *l, const char *line, const char *why)
{
	char text[20000];

	snprintf(text, sizeof(text), "process 10 prog -\nmap 10 0x1000 0x2000 0 -\n%s\n", line);
	if (read_text(l, text) != -EINVAL)
		fail_msg("'%.60s' is not refused", line);
	assert_ptr_equal(strstr(why_of(l), "line 3: "), why_of(l));
	if (!strstr(why_of(l), why))
		fail_msg("'%.60s' gave '%s'", line, why_of(l));
	close_list(l);
}

static void test_bad_lines(void **state)
{
	struct list *l = *state;
	char line[16500] = "# ";

	refuse(l, "bogus 1 2",
	       "'bogus' is no kind of record: 'heaptap report --events' prints a list of events");
	refuse(l, "free 10 1 free 0x10", "takes 5 to 9 words, not 4");
	refuse(l, "exit 10 0 1 2", "takes 2 to 3 words, not 4");
	refuse(l, "alloc 11 1 malloc 0x10 1 0", "no process line for pid 11");
	refuse(l, "alloc 10 1 mallok 0x10 1 0", "'mallok' is no allocator function");
	refuse(l, "alloc 10 1 malloc 0x10 -1 0", "'-1' is not a number");
	refuse(l, "alloc 10 1 malloc 0xzz 1 0", "'0xzz' is not a number");
	refuse(l, "alloc 10 1 malloc 16 18446744073709551616 0", "is not a number");
	refuse(l, "alloc 10 4294967296 malloc 16 1 0", "4294967296 is too large");
	refuse(l, "alloc 10 1 malloc 16 1 0 temporary", "'temporary' does not belong here");
	refuse(l, "alloc 10 1 malloc 16 1 align=8", "'align=8' is not a number");
	refuse(l, "free 10 1 free 16 size=8", "'size=8' is not a number");
	refuse(l, "sample 4096", "it must come before all processes");
	refuse(l, "free 10 1 free 16 0 77 88", "'88' does not belong here");
	refuse(l, "free 10 1 free 16 0 temporary 88", "'88' does not belong here");
	refuse(l, "process 10 again -", "has a process line already");
	refuse(l, "process 12 prog - begun", "'begun' instead of 'started'");
	refuse(l, "map 10 0x3000 0x2000 0 -", "ends before it starts");
	refuse(l, "map 10 0x1800 0x2800 0 -", "overlaps another one");
	refuse(l, "map 10 0x800 0x1001 0 -", "overlaps another one");
	refuse(l, "map 10 0x5000 0x6000 0 /x abc", "build ID");
	refuse(l, "map 10 0x5000 0x6000 0 /x 0G", "build ID");
	refuse(l, "stack 1 10 complete 0x10", "stack ids begin with 2");
	refuse(l, "stack 2 10 finished 0x10", "'finished' is not the end of a stack");
	refuse(l, "thread 11 1 x", "no process line for pid 11");
	refuse(l, "allocator 10 glibc /no/such", "is in no map line before");
	refuse(l, "function 77 0 a b", "77 is too large");
	refuse(l, "mark x here", "'x' is not a number");
	refuse(l, "exit 10 0 later", "'later' does not belong here");
	memset(line + 2, 'x', sizeof(line) - 3);
	refuse(l, line, "longer than 16382 bytes");
	strcpy(line, "stack 2 10 complete");
	for (int i = 0; i <= STACK_MAX_FRAMES; i++)
		strcat(line, " 0x10");
	refuse(l, line, "more than 131 words");
}

/* The reader of the stream refuses a record, and the reason names its line; all before it has come. */
static void test_refused_records(void **state)
{
	static const char *const lines[][2] = { { "fork 10 10", "line 4: a child that cannot be" },
						{ "process 0 x -", "line 4: a pid out of range" } };
	struct list *l = *state;
	char text[200];

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		snprintf(text, sizeof(text), "process 10 prog -\n\nalloc 10 1 malloc 16 1 0\n%s\n# more\n",
			 lines[i][0]);
		assert_int_equal(read_text(l, text), -EBADMSG);
		assert_string_equal(why_of(l), lines[i][1]);
		assert_int_equal(l->nr, 3);
		close_list(l);
	}
}

/* A time before that of the event before it is that one. */
static void test_times(void **state)
{
	struct list *l = *state;

	assert_int_equal(read_text(l, "process 7 a b\nalloc 7 1 malloc 16 1 0 50\nfree 7 1 free 16 0 40\n"),
			 0);
	assert_int_equal(l->nr, 5);
	assert_int_equal(l->seen[2].rec.heap.time_ns, 50);
	assert_int_equal(l->seen[4].rec.heap.time_ns, 50);
	close_list(l);
}

static void test_bad_files(void **state)
{
	static const char nul[] = "process 10 prog -\nproc\0ess 11 prog -\n";
	struct list *l = *state;

	assert_int_equal(read_portions(l, nul, sizeof(nul) - 1, 4096), -EINVAL);
	assert_string_equal(why_of(l), "line 2: a NUL");
	close_list(l);
	assert_int_equal(read_text(l, ""), 0);
	assert_int_equal(l->nr, 0);
	close_list(l);
}

/* In portions of any size it is the same list. */
static void test_portions(void **state)
{
	struct list *l = *state;

	for (size_t portion = 1; portion < 100; portion++) {
		assert_int_equal(read_portions(l, good, strlen(good), portion), 0);
		has_kinds(l, good_kinds, ARRAY_SIZE(good_kinds));
		close_list(l);
	}
}

/* Every prefix of a good text, and the text with each byte changed, is read or refused, never more. */
static void test_damaged(void **state)
{
	struct list *l = *state;
	char *text = strdup(good);
	size_t len = strlen(text);
	size_t nr_refused = 0;

	for (size_t cut = 0; cut < len; cut++) {
		int err = read_portions(l, text, cut, 4096);

		assert_true(err == 0 || err == -EINVAL || err == -EBADMSG);
		assert_int_equal(!err, !why_of(l)[0]);
		close_list(l);
	}
	for (size_t i = 0; i < len; i++) {
		char old = text[i];
		int err;

		text[i] ^= 1 << i % 7;
		err = read_portions(l, text, len, 4096);
		assert_true(err == 0 || err == -EINVAL || err == -EBADMSG);
		assert_int_equal(!err, !why_of(l)[0]);
		nr_refused += err != 0;
		close_list(l);
		text[i] = old;
	}
	assert_true(nr_refused > len / 4);
	free(text);
}

static int setup(void **state)
{
	*state = calloc(1, sizeof(struct list));
	return *state ? 0 : -1;
}

static int teardown(void **state)
{
	free(*state);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_processes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_records, setup, teardown),
		cmocka_unit_test_setup_teardown(test_samples, setup, teardown),
		cmocka_unit_test_setup_teardown(test_losses, setup, teardown),
		cmocka_unit_test_setup_teardown(test_late_mapping, setup, teardown),
		cmocka_unit_test_setup_teardown(test_error_of_the_handler, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bad_lines, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refused_records, setup, teardown),
		cmocka_unit_test_setup_teardown(test_times, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bad_files, setup, teardown),
		cmocka_unit_test_setup_teardown(test_portions, setup, teardown),
		cmocka_unit_test_setup_teardown(test_damaged, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

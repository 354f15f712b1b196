/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Records of a recorder and their order; parts, a full device, and a recorder that records nothing. */
#include "user/stream/recorder.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "user/target/allocator.h"
#include "user/lib/log.h"
#include "user/stream/seek.h"
#include "user/stream/span.h"
#include "user/stream/stream_read.h"
#include "user/stream/stream_zstd.h"
#include "user/target/target.h"
#include "tests/unit/skip.h"

enum { PID = 4194000 /* no process has it */ };

static char folder[] = "/tmp/heaptap-recorder-XXXXXX";
static char path[64];

/* One letter for each record, and some of its fields. */
static char seen[4096];
static struct stream_end last_end;
static u32 part;

static int on_record(void *ctx, enum stream_kind kind, const void *rec)
{
	static const char letters[NR_STREAM_KINDS] = {
		[STREAM_HELLO] = 'H',	[STREAM_FUNCTION] = '1',  [STREAM_STACK] = 's',
		[STREAM_PROCESS] = 'P', [STREAM_MODULE] = 'm',	  [STREAM_MAPS] = 'M',
		[STREAM_MAPPING] = '+', [STREAM_ALLOCATOR] = 'A', [STREAM_EXIT] = 'X',
		[STREAM_LOSSES] = 'L',	[STREAM_MARK] = '!',	  [STREAM_END] = 'E',
		[STREAM_EVENT] = 'e',	[STREAM_EXEC] = 'x',	  [STREAM_THREAD] = 't',
	};
	size_t used = strlen(seen);

	(void)ctx;
	assert_true(used + 64 < sizeof(seen));
	assert_true(letters[kind]);
	seen[used] = letters[kind];
	seen[used + 1] = '\0';
	if (kind == STREAM_HELLO)
		part = ((const struct stream_hello *)rec)->part;
	if (kind == STREAM_END)
		last_end = *(const struct stream_end *)rec;
	if (kind == STREAM_MARK)
		snprintf(seen + used + 1, 64, "%s;", ((const struct stream_mark_record *)rec)->text);
	return 0;
}

/* Read the whole file @name. Returns the result of stream_feed() and stream_finish(). */
static int read_back(const char *name)
{
	const struct stream_handler handler = { .record = on_record };
	struct stream_reader *r;
	u8 buf[65536];
	FILE *in = fopen(name, "r");
	size_t n;
	int err = 0;

	assert_non_null(in);
	seen[0] = '\0';
	assert_int_equal(stream_reader_new(&r, &handler, &stream_zstd), 0);
	while (!err && (n = fread(buf, 1, sizeof(buf), in)) > 0)
		err = stream_feed(r, buf, n);
	if (!err)
		err = stream_finish(r);
	fclose(in);
	stream_reader_free(r);
	return err;
}

static struct module libc = { .id = 3, .fd = -1, .path = "/lib/libc.so.6", .build_id_len = 2 };
static struct mapping maps[] = { { .start = 0x1000, .end = 0x2000, .module = &libc },
				 { .start = 0x4000, .end = 0x5000 } };
static struct target_allocator allocators[] = { { &libc, "glibc" } };
static struct target target = { .pid = PID,
				.comm = "prog",
				.exe = "/bin/prog",
				.is_started = true,
				.maps = { maps, ARRAY_SIZE(maps), 1, 0 },
				.allocators = allocators,
				.nr_allocators = 1 };

static void put_event(struct recorder *r, u64 addr)
{
	struct heap_event ev = {
		.h = { .kind = EVENT_ALLOC, .fn = alloc_fn_find(NULL, "malloc"), .pid = PID, .tid = PID },
		.addr = addr,
		.size = 8
	};

	recorder_event(r, &ev.h, sizeof(ev));
}

static int setup(void **state)
{
	(void)state;
	log_set_level(LOG_ERROR);
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/r.heaptap", folder);
	return 0;
}

static int teardown(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	return system(command);
}

static struct recorder *new_recorder(struct recorder_options o)
{
	struct recorder *r;

	o.force = true;
	assert_int_equal(recorder_new(&r, &o, NULL), 0);
	assert_non_null(r);
	recorder_begin(r, "bpf", true, 1);
	return r;
}

static void whole(void **state)
{
	struct recorder *r = new_recorder((struct recorder_options){ .path = path });
	const struct losses lost = { .allocs = 3 };
	const struct process_event end = { .h = { .kind = EVENT_EXIT, .pid = PID, .tid = PID } };

	(void)state;
	assert_true(recorder_is_open(r));
	recorder_process(r, &target, 5);
	put_event(r, 16);
	recorder_mark(r, 7, "half");
	recorder_losses(r, PID, &lost, STREAM_TAINT);
	recorder_maps(r, &target); /* the module is not introduced again */
	recorder_mark_report(r);
	recorder_event(r, &end.h, sizeof(end));
	recorder_end(r, 100, 90);
	assert_false(recorder_is_open(r));
	put_event(r, 32); /* after the end */
	assert_false(recorder_has_failed(r));
	recorder_free(r);
	assert_int_equal(read_back(path), 0);
	assert_string_equal(seen, "HPmM++A1e!half;LM++A!;XE");
	assert_int_equal(last_end.reason, STREAM_END_DONE);
	assert_int_equal(last_end.nr_events, 1);
	assert_int_equal(last_end.duration_ns, 90);
}

/* A recording that is broken off says so in its end. */
static void broken_off(void **state)
{
	struct recorder *r = new_recorder((struct recorder_options){ .path = path });

	(void)state;
	recorder_process(r, &target, 5);
	put_event(r, 16);
	recorder_free(r);
	assert_int_equal(read_back(path), 0);
	assert_string_equal(seen, "HPmM++A1eE");
	assert_int_equal(last_end.reason, STREAM_END_ERROR);
}

static void parts(void **state)
{
	char pattern[80], name[80];
	struct recorder *r;
	u64 addr = 0;

	(void)state;
	snprintf(pattern, sizeof(pattern), "%s/part%%n.heaptap", folder);
	r = new_recorder((struct recorder_options){ .path = pattern, .part_bytes = 1 });
	recorder_process(r, &target, 5);
	put_event(r, addr += 16);
	assert_true(recorder_next_part(r, "bpf", true));
	assert_false(recorder_has_stack(r, 77)); /* the new part has no stacks */
	recorder_process(r, &target, 6);
	put_event(r, addr += 16);
	recorder_end(r, 100, 90);
	recorder_free(r);
	for (u32 i = 1; i <= 2; i++) {
		snprintf(name, sizeof(name), "%s/part%u.heaptap", folder, i);
		assert_int_equal(read_back(name), 0);
		assert_string_equal(seen, "HPmM++A1eE");
		assert_int_equal(part, i - 1);
		assert_int_equal(last_end.reason, i == 1 ? STREAM_END_PART : STREAM_END_DONE);
	}
}

static void full_device(void **state)
{
	struct recorder *r;

	(void)state;
	if (access("/dev/full", W_OK))
		skip_because("no /dev/full here");
	r = new_recorder((struct recorder_options){ .path = "/dev/full" });
	recorder_process(r, &target, 5);
	assert_true(recorder_has_failed(r));
	assert_false(recorder_is_open(r));
	put_event(r, 16);
	recorder_end(r, 100, 90);
	recorder_free(r);
}

static void nothing(void **state)
{
	struct recorder *r;
	struct recorder_options none = { .depth = 1 }, bad = { .path = "/no/such/folder/r.heaptap" };

	(void)state;
	assert_int_equal(recorder_new(&r, &none, NULL), 0);
	assert_null(r);
	recorder_begin(r, "bpf", true, 1);
	recorder_set_local(r);
	recorder_process(r, &target, 1);
	recorder_maps(r, &target);
	put_event(r, 16);
	recorder_mark(r, 1, "x");
	recorder_mark_report(r);
	recorder_thread(r, 1, 1, "x");
	recorder_tick(r);
	assert_false(recorder_next_part(r, "bpf", true));
	assert_true(recorder_has_stack(r, 77));
	assert_int_equal(recorder_finish_list(r), 0);
	recorder_end(r, 1, 1);
	assert_false(recorder_has_failed(r) || recorder_is_open(r));
	recorder_free(r);
	assert_int_not_equal(recorder_new(&r, &bad, NULL), 0);
	assert_int_not_equal(recorder_check(&bad), 0);
}

/* A state lies behind each moment that was written before it: an end has a later time than the last heap event (F5). */
static void seek_behind_an_end(void **state)
{
	struct recorder *r = new_recorder((struct recorder_options){ .path = path, .seek_bytes = 1 });
	const struct process_event end = { .h = { .kind = EVENT_EXIT, .pid = PID, .tid = PID },
					   .time_ns = 5000000 };
	struct seek_point p;
	struct span span;
	const char *why;
	int fd;

	(void)state;
	recorder_process(r, &target, 1000000);
	put_event(r, 0x100);
	recorder_event(r, &end.h, sizeof(end));
	assert_true(recorder_wants_seek(r));
	assert_true(recorder_begin_seek(r, 0, "bpf", true));
	recorder_end_seek(r);
	recorder_end(r, 9000000, 8000000);
	recorder_free(r);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(span_parse(&span, "3ms,end", &why), 0);
	assert_false(seek_find(fd, &span, &p));
	assert_int_equal(span_parse(&span, "5ms,end", &why), 0);
	assert_true(seek_find(fd, &span, &p));
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(seek_behind_an_end), cmocka_unit_test(whole),
		cmocka_unit_test(broken_off),	      cmocka_unit_test(parts),
		cmocka_unit_test(full_device),	      cmocka_unit_test(nothing),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of the replay source: what a text says comes out as records, and a bad text gives one clear error. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "user/target/allocator.h"
#include "user/heap/heap.h"
#include "user/session/source_replay.h"
#include "user/heap/stacks.h"

enum { MAX_RECORDS = 10000, MAX_TEXT = 600000 };

/* Records that a test's sink has received. */
struct seen {
	union {
		struct event_header h;
		struct heap_event heap;
		struct stack_event stack;
		struct process_event process;
	} records[MAX_RECORDS];
	size_t sizes[MAX_RECORDS];
	size_t nr;
	size_t fail_at; /* 0 = never */
};

static struct seen seen;

static int see(void *ctx, const struct event_header *rec, size_t len)
{
	struct seen *s = ctx;

	assert_true(s->nr < MAX_RECORDS && len <= sizeof(s->records[0]));
	assert_int_equal((uintptr_t)rec % 8, 0);
	memcpy(&s->records[s->nr], rec, len);
	s->sizes[s->nr++] = len;
	return s->nr == s->fail_at ? -EIO : 0;
}

static const struct sink sink = { .ctx = &seen, .record = see };

struct replay {
	struct module_table *modules;
	struct source *source;
	char message[1000]; /* what was logged */
};

/* Write @len bytes of @text to a file without a name, open it as source; what is logged goes to r->message. */
static int open_bytes(struct replay *r, const char *text, size_t len)
{
	int fd = memfd_create("replay", MFD_CLOEXEC);
	char path[32];
	FILE *log = tmpfile();
	int saved = dup(STDERR_FILENO);
	size_t nr;
	int err;

	memset(&seen, 0, sizeof(seen));
	memset(r, 0, sizeof(*r));
	assert_true(fd >= 0 && log && saved >= 0);
	assert_int_equal(write(fd, text, len), len);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	assert_int_equal(module_table_new(&r->modules), 0);
	fflush(stderr);
	dup2(fileno(log), STDERR_FILENO);
	err = source_replay_open(&r->source, path, r->modules, NULL);
	fflush(stderr);
	dup2(saved, STDERR_FILENO);
	close(saved);
	rewind(log);
	nr = fread(r->message, 1, sizeof(r->message) - 1, log);
	r->message[nr] = '\0';
	fclose(log);
	close(fd);
	return err;
}

static int open_text(struct replay *r, const char *text)
{
	return open_bytes(r, text, strlen(text));
}

static void close_replay(struct replay *r)
{
	if (r->source)
		source_replay.free(r->source);
	module_table_free(r->modules);
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
				"exec 10\n"
				"fork 10 11 7000\n"
				"exit 10 256"; /* no newline at the end */

static void test_processes(void **state)
{
	const struct target *t;
	struct replay r;

	(void)state;
	assert_int_equal(open_text(&r, good), 0);
	t = source_replay_target(r.source, 0);
	assert_int_equal(t->pid, 10);
	assert_string_equal(t->comm, "prog");
	assert_string_equal(t->exe, "/usr/bin/prog");
	assert_true(t->is_started);
	assert_int_equal(t->pidfd, -1);
	assert_int_equal(t->maps.nr, 3);
	assert_int_equal(t->maps.maps[0].start, 0x1000);
	assert_int_equal(t->maps.maps[1].start, 0x5000);
	assert_int_equal(t->maps.maps[1].file_offset, 0x1000);
	assert_string_equal(t->maps.maps[1].module->path, "/no/such/lib.so");
	assert_int_equal(t->maps.maps[1].module->build_id_len, 3);
	assert_memory_equal(t->maps.maps[1].module->build_id, "\x0a\x1b\xff", 3);
	assert_null(t->maps.maps[2].module);
	t = source_replay_target(r.source, 1);
	assert_string_equal(t->comm, "a-name-longer-t");
	assert_false(t->is_started);
	assert_ptr_equal(t->maps.maps[0].module, source_replay_target(r.source, 0)->maps.maps[1].module);
	assert_null(source_replay_target(r.source, 2));
	assert_int_equal(module_count(r.modules), 2);
	close_replay(&r);
}

static void test_records(void **state)
{
	struct replay r;

	(void)state;
	assert_int_equal(open_text(&r, good), 0);
	assert_false(source_replay_is_done(r.source));
	assert_int_equal(source_replay.wait_fd(r.source), -1);
	assert_int_equal(source_replay.attach(r.source, source_replay_target(r.source, 0)), 0);
	assert_int_equal(source_replay.attach(r.source, &(struct target){ .pid = 12 }), -ESRCH);
	assert_int_equal(source_replay.poll(r.source, &sink), 10);
	assert_int_equal(source_replay.poll(r.source, &sink), 0);
	assert_true(source_replay_is_done(r.source));
	assert_int_equal(seen.nr, 10);
	assert_int_equal(seen.sizes[0], 32 + 2 * 8);
	assert_int_equal(seen.records[0].stack.end, STACK_NO_INFO);
	assert_int_equal(seen.records[0].stack.ips[1], 0x1020);
	assert_int_equal(seen.sizes[1], sizeof(struct heap_event));
	assert_int_equal(seen.records[1].h.kind, EVENT_ALLOC);
	assert_int_equal(seen.records[1].h.fn, alloc_fn_find(NULL, "malloc"));
	assert_int_equal(seen.records[1].h.tid, 100);
	assert_int_equal(seen.records[1].heap.size, 24);
	assert_int_equal(seen.records[1].heap.stack, 2);
	assert_int_equal(seen.records[1].heap.alignment, 64);
	assert_int_equal(seen.records[2].h.flags, EVENT_RETRY);
	assert_int_equal(seen.records[2].heap.size, 8);
	assert_int_equal(seen.records[2].heap.time_ns, 5000);
	assert_int_equal(seen.records[3].h.flags, EVENT_TEMPORARY);
	assert_int_equal(seen.records[3].heap.size, 24);
	assert_int_equal(seen.records[3].heap.time_ns, 5001);
	assert_true(seen.records[3].heap.alignment == ALIGNMENT_ZERO);
	assert_int_equal(seen.records[4].heap.old_addr, 0x30);
	assert_int_equal(seen.records[5].heap.old_addr, 0x30);
	assert_int_equal(seen.records[5].heap.addr, 0x40);
	assert_int_equal(seen.records[6].h.flags, EVENT_UNMAP);
	assert_int_equal(seen.records[6].heap.size, 4096);
	assert_int_equal(seen.records[7].h.kind, EVENT_EXEC);
	assert_int_equal(seen.records[8].process.child_pid, 11);
	assert_int_equal(seen.records[9].process.exit_status, 256);
	assert_int_equal(seen.records[9].process.time_ns, 7001);
	assert_int_equal(source_replay.losses(r.source, 10).frees, 2);
	assert_int_equal(source_replay.losses(r.source, 10).other, 4);
	assert_int_equal(source_replay.losses(r.source, 11).frees, 0);
	assert_int_equal(source_replay.losses(r.source, 12).frees, 0);
	close_replay(&r);
}

static void test_pause_and_sink_error(void **state)
{
	struct replay r;

	(void)state;
	assert_int_equal(open_text(&r, good), 0);
	source_replay.pause(r.source, 10);
	source_replay.pause(r.source, 12);
	assert_int_equal(source_replay.poll(r.source, &sink), 6); /* without 4 heap events */
	close_replay(&r);

	assert_int_equal(open_text(&r, good), 0);
	seen.fail_at = 3;
	assert_int_equal(source_replay.poll(r.source, &sink), -EIO);
	assert_int_equal(source_replay.poll(r.source, &sink), 7);
	close_replay(&r);
}

/* The way to the books: replayed events, stacks and mappings give the expected rows. */
static void test_to_books(void **state)
{
	struct stack_table *stacks;
	struct heap *h;
	struct replay r;

	(void)state;
	assert_int_equal(open_text(&r, good), 0);
	assert_int_equal(heap_new(&h, NULL), 0);
	assert_int_equal(stack_table_new(&stacks), 0);
	assert_int_equal(source_replay.poll(r.source, &sink), 10);
	assert_int_equal(
		stack_table_add(stacks, &seen.records[0].stack, &source_replay_target(r.source, 0)->maps), 0);
	for (size_t i = 1; i < 6; i++)
		assert_int_equal(heap_event(h, &seen.records[i].heap), 0);
	assert_int_equal(heap_totals(h).allocs, 3);
	assert_int_equal(heap_totals(h).temporary, 1);
	assert_int_equal(heap_totals(h).unknown_frees, 1);
	assert_int_equal(heap_totals(h).live_bytes, 8 + 99);
	assert_int_equal(stack_get(stacks, 2)->frames[0].offset, 0x1010);
	assert_int_equal(stack_get(stacks, 2)->frames[1].offset, 0x20);
	stack_table_free(stacks);
	heap_free(h);
	close_replay(&r);
}

/* @line, third after two good ones, is refused with @why. */
static void refuse(const char *line, const char *why)
{
	char text[20000];
	struct replay r;
	char *end;

	snprintf(text, sizeof(text), "process 10 prog -\nmap 10 0x1000 0x2000 0 -\n%s\n", line);
	assert_int_equal(open_text(&r, text), -EINVAL);
	assert_null(r.source);
	assert_ptr_equal(strstr(r.message, "heaptap: replay: "), r.message);
	if (!strstr(r.message, why) || !strstr(r.message, ":3: "))
		fail_msg("'%.60s' gave '%s'", line, r.message);
	end = strchr(r.message, '\n');
	assert_true(end && !end[1]);
	close_replay(&r);
}

static void test_bad_lines(void **state)
{
	char line[16500] = "# ";

	(void)state;
	refuse("bogus 1 2",
	       "'bogus' is no kind of record: 'heaptap report --events' prints a list of events");
	refuse("free 10 1 free 0x10", "takes 5 to 9 words, not 4");
	refuse("exit 10 0 1 2", "takes 2 to 3 words, not 4");
	refuse("alloc 11 1 malloc 0x10 1 0", "no process line for pid 11");
	refuse("alloc 10 1 mallok 0x10 1 0", "'mallok' is no allocator function");
	refuse("alloc 10 1 malloc 0x10 -1 0", "'-1' is not a number");
	refuse("alloc 10 1 malloc 0xzz 1 0", "'0xzz' is not a number");
	refuse("alloc 10 1 malloc 16 18446744073709551616 0", "is not a number");
	refuse("alloc 10 4294967296 malloc 16 1 0", "4294967296 is too large");
	refuse("alloc 10 1 malloc 16 1 0 temporary", "'temporary' does not belong here");
	refuse("alloc 10 1 malloc 16 1 align=8", "'align=8' is not a number");
	refuse("free 10 1 free 16 size=8", "'size=8' is not a number");
	refuse("free 10 1 free 16 0 77 88", "'88' does not belong here");
	refuse("free 10 1 free 16 0 temporary 88", "'88' does not belong here");
	refuse("process 10 again -", "has a process line already");
	refuse("process 12 prog - begun", "'begun' instead of 'started'");
	refuse("map 10 0x3000 0x2000 0 -", "ends before it starts");
	refuse("map 10 0x1800 0x2800 0 -", "overlaps another one");
	refuse("map 10 0x800 0x1001 0 -", "overlaps another one");
	refuse("map 10 0x5000 0x6000 0 /x abc", "build ID");
	refuse("map 10 0x5000 0x6000 0 /x 0G", "build ID");
	refuse("stack 1 10 complete 0x10", "stack ids begin with 2");
	refuse("stack 2 10 finished 0x10", "'finished' is not the end of a stack");
	refuse("thread 11 1 x", "no process line for pid 11");
	refuse("allocator 10 glibc /no/such", "is in no map line before");
	refuse("function 77 0 a b", "77 is too large");
	refuse("mark x here", "'x' is not a number");
	refuse("exit 10 0 later", "'later' does not belong here");
	refuse("\x1b[2J", "\\x1b[2J");
	memset(line + 2, 'x', sizeof(line) - 3);
	refuse(line, "longer than 16382 bytes");
	strcpy(line, "stack 2 10 complete");
	for (int i = 0; i <= STACK_MAX_FRAMES; i++)
		strcat(line, " 0x10");
	refuse(line, "more than 131 words");
}

static void test_bad_files(void **state)
{
	static const char nul[] = "process 10 prog -\nproc\0ess 11 prog -\n";
	struct replay r;

	(void)state;
	assert_int_equal(open_bytes(&r, nul, sizeof(nul) - 1), -EINVAL);
	assert_non_null(strstr(r.message, ":2: a NUL"));
	close_replay(&r);
	assert_int_equal(open_text(&r, ""), 0);
	assert_true(source_replay_is_done(r.source));
	assert_int_equal(source_replay.poll(r.source, &sink), 0);
	close_replay(&r);
	assert_int_equal(module_table_new(&r.modules), 0);
	assert_int_equal(source_replay_open(&r.source, "/no/such/file", r.modules, NULL), -ENOENT);
	assert_int_equal(source_replay_open(&r.source, "/", r.modules, NULL), -EISDIR);
	module_table_free(r.modules);
}

/* Every prefix of a good text, and the text with each byte changed, is read or refused, never more. */
static void test_damaged(void **state)
{
	char *text = strdup(good);
	size_t len = strlen(text);
	struct replay r;
	size_t nr_refused = 0;

	(void)state;
	for (size_t cut = 0; cut < len; cut++) {
		int err = open_bytes(&r, text, cut);

		assert_true(err == 0 || err == -EINVAL);
		assert_int_equal(!err, !r.message[0]);
		close_replay(&r);
	}
	for (size_t i = 0; i < len; i++) {
		char old = text[i];
		int err;

		text[i] ^= 1 << i % 7;
		err = open_bytes(&r, text, len);
		assert_true(err == 0 || err == -EINVAL);
		assert_int_equal(!err, !r.message[0]);
		if (!err)
			assert_true(source_replay.poll(r.source, &sink) >= 0);
		nr_refused += err != 0;
		close_replay(&r);
		text[i] = old;
	}
	assert_true(nr_refused > len / 4);
	free(text);
}

/* More records than one poll delivers. */
static void test_long(void **state)
{
	char *text = malloc(MAX_TEXT);
	size_t len = snprintf(text, MAX_TEXT, "process 10 prog -\n");
	struct replay r;
	int nr;
	int polls = 0;

	(void)state;
	for (int i = 1; i <= 9000; i++)
		len += snprintf(text + len, MAX_TEXT - len, "alloc 10 1 malloc %d 1 0\n", i * 16);
	assert_int_equal(open_text(&r, text), 0);
	while ((nr = source_replay.poll(r.source, &sink)) > 0)
		polls++;
	assert_true(nr == 0 && polls > 1 && source_replay_is_done(r.source));
	assert_int_equal(seen.nr, 9000);
	for (int i = 0; i < 9000; i++)
		assert_int_equal(seen.records[i].heap.addr, (i + 1) * 16);
	close_replay(&r);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_processes),
		cmocka_unit_test(test_records),
		cmocka_unit_test(test_pause_and_sink_error),
		cmocka_unit_test(test_to_books),
		cmocka_unit_test(test_bad_lines),
		cmocka_unit_test(test_bad_files),
		cmocka_unit_test(test_damaged),
		cmocka_unit_test(test_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

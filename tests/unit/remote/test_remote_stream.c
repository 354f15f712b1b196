/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Records that a session gets from a stream: their order, lost connections, and streams that lie (G4). */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "user/target/allocator.h"
#include "user/remote/remote_stream.h"

enum { MAX_BYTES = 1 << 20, MAX_SEEN = 256 };

static struct forward_received received;

/* A stream that is being written, and the records that came out. */
struct world {
	struct stream_writer *writer;
	struct remote_stream *source;
	struct module_table *modules;
	struct alloc_table *fns;
	u8 bytes[MAX_BYTES];
	size_t len;
	union {
		struct event_header h;
		struct heap_event heap;
		struct stack_event stack;
		struct process_event life;
	} seen[MAX_SEEN];
	size_t nr_seen;
	bool forgets; /* as a session does: whoever has ended */
};

static int put_bytes(void *ctx, const void *data, size_t len)
{
	struct world *w = ctx;

	assert_true(w->len + len <= MAX_BYTES);
	memcpy(w->bytes + w->len, data, len);
	w->len += len;
	return 0;
}

static int on_record(void *ctx, const struct event_header *rec, size_t len)
{
	struct world *w = ctx;

	assert_true(w->nr_seen < MAX_SEEN && len <= sizeof(w->seen[0]));
	memcpy(&w->seen[w->nr_seen++], rec, len);
	if (w->forgets && rec->kind == EVENT_EXIT)
		remote_stream_forget(w->source, (pid_t)rec->pid);
	return 0;
}

static void write_hello(struct world *w)
{
	const struct stream_hello hello = { .id = 7, .mono_ns = 1000, .backend = "bpf" };

	assert_int_equal(stream_write(w->writer, STREAM_HELLO, &hello), 0);
}

static int begin(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	const struct stream_writer_options o = { .ctx = w, .write = put_bytes };

	assert_non_null(w);
	assert_int_equal(module_table_new(&w->modules), 0);
	assert_int_equal(alloc_table_new(&w->fns), 0);
	assert_int_equal(stream_writer_new(&w->writer, &o), 0);
	assert_int_equal(remote_stream_new(&w->source, w->modules, w->fns, NULL), 0);
	write_hello(w);
	*state = w;
	return 0;
}

static int end(void **state)
{
	struct world *w = *state;

	stream_writer_free(w->writer);
	remote_stream_free(w->source);
	module_table_free(w->modules);
	alloc_table_free(w->fns);
	free(w);
	return 0;
}

static void write_rec(struct world *w, enum stream_kind kind, const void *rec)
{
	assert_int_equal(stream_write(w->writer, kind, rec), 0);
}

static void write_process(struct world *w, u64 start_time, const char *exe)
{
	const struct stream_process p = { .pid = 9,
					  .flags = STREAM_STARTED,
					  .word_size = 4,
					  .start_time = start_time,
					  .comm = "x",
					  .exe = exe };

	write_rec(w, STREAM_PROCESS, &p);
}

static void write_maps(struct world *w, u64 start)
{
	const struct stream_maps maps = { .pid = 9, .nr = 1 };
	const struct stream_mapping m = { .start = start, .end = start + 4096, .bias = start, .module = 1 };

	write_rec(w, STREAM_MAPS, &maps);
	write_rec(w, STREAM_MAPPING, &m);
}

static void write_module(struct world *w, const char *path)
{
	const struct stream_module m = {
		.module = 1, .build_id = { 1, 2, 3 }, .build_id_len = 3, .path = path
	};

	write_rec(w, STREAM_MODULE, &m);
}

static void write_losses(struct world *w, u64 allocs, u64 frees, u8 flags)
{
	const struct stream_losses l = { .pid = 9,
					 .flags = flags,
					 .l = { .allocs = allocs, .frees = frees } };

	write_rec(w, STREAM_LOSSES, &l);
}

static void write_alloc_of(struct world *w, u32 pid, u64 addr)
{
	const struct heap_event ev = {
		.h = { .kind = EVENT_ALLOC, .fn = alloc_fn_find(NULL, "malloc"), .pid = pid, .tid = pid },
		.time_ns = 2000,
		.addr = addr,
		.size = 16
	};

	assert_int_equal(stream_write_event(w->writer, &ev.h, sizeof(ev)), 0);
}

static void write_alloc(struct world *w, u64 addr)
{
	write_alloc_of(w, 9, addr);
}

/* Feed the bytes written until now. */
static int feed(struct world *w)
{
	const struct sink sink = { w, on_record };
	int err;

	assert_int_equal(stream_flush(w->writer), 0);
	err = remote_stream_feed(w->source, w->bytes, w->len, &sink);
	w->len = 0;
	return err;
}

static void saw(const struct world *w, size_t i, u8 kind, u8 flags)
{
	assert_true(i < w->nr_seen);
	assert_int_equal(w->seen[i].h.kind, kind);
	assert_int_equal(w->seen[i].h.flags, flags);
	assert_int_equal(w->seen[i].h.pid, 9);
}

static void in_order(void **state)
{
	struct world *w = *state;
	struct target *t;
	write_process(w, 5, "/bin/x");
	write_module(w, "/lib/x.so");
	write_maps(w, 0x10000);
	write_losses(w, 1, 2, STREAM_TAINT);
	write_alloc(w, 0x5000);
	assert_int_equal(feed(w), 0);
	assert_int_equal(w->nr_seen, 3);
	saw(w, 0, EVENT_MAPS, 0);
	saw(w, 1, EVENT_LOSSES, EVENT_TAINT);
	saw(w, 2, EVENT_ALLOC, 0);
	assert_string_equal(alloc_fn(NULL, w->seen[2].h.fn)->symbol, "malloc");
	assert_int_equal(remote_stream_losses(w->source, 9).frees, 2);
	assert_int_equal(remote_stream_target(w->source, 9, &t), 0);
	assert_true(t->is_started && t->is_32bit && t->pidfd < 0);
	assert_string_equal(t->exe, "/bin/x");
	assert_int_equal(t->maps.nr, 1);
	assert_string_equal(t->maps.maps[0].module->path, "/lib/x.so");
	assert_int_equal(t->maps.maps[0].module->fd, -1);
	assert_int_equal(remote_stream_update(w->source, t), 0);
	write_maps(w, 0x20000);
	assert_int_equal(feed(w), 0);
	assert_int_equal(remote_stream_update(w->source, t), 1);
	assert_int_equal(t->maps.maps[0].start, 0x20000);
	target_free(t);
	remote_stream_received(w->source, &received);
	assert_int_equal(received.nr_had, 1);
	assert_int_equal(received.had[0].pid, 9);
	assert_int_equal(received.had[0].start_time, 5);
	assert_int_equal(received.had[0].allocs, 1);
	assert_int_equal(remote_stream_target(w->source, 10, &t), -ESRCH);
}

static void restart(struct world *w, bool is_continued)
{
	stream_writer_restart(w->writer);
	remote_stream_restart(w->source, is_continued);
	w->nr_seen = 0;
	write_hello(w);
}

/* The server has counted the missed events: they are in the losses. */
static void continued(void **state)
{
	struct world *w = *state;

	write_process(w, 5, "/bin/x");
	write_alloc(w, 0x5000);
	assert_int_equal(feed(w), 0);
	restart(w, true);
	write_process(w, 5, "/bin/x");
	write_losses(w, 10, 0, STREAM_GAPS);
	assert_int_equal(feed(w), 0);
	assert_int_equal(w->nr_seen, 1);
	assert_int_equal(remote_stream_losses(w->source, 9).allocs, 10);
	assert_int_equal(remote_stream_losses(w->source, 9).other, 0);
}

/* The server has not counted them: one more loss, all blocks unsure, and new numbers. */
static void anew(void **state)
{
	struct world *w = *state;

	write_process(w, 5, "/bin/x");
	write_losses(w, 3, 0, 0);
	assert_int_equal(feed(w), 0);
	restart(w, false);
	write_process(w, 5, "/bin/x");
	assert_int_equal(feed(w), 0);
	saw(w, 0, EVENT_LOSSES, EVENT_TAINT);
	assert_int_equal(remote_stream_losses(w->source, 9).allocs, 3);
	assert_int_equal(remote_stream_losses(w->source, 9).other, 1);
	write_losses(w, 2, 0, 0);
	assert_int_equal(feed(w), 0);
	assert_int_equal(remote_stream_losses(w->source, 9).allocs, 5);
	assert_int_equal(remote_stream_losses(w->source, 9).other, 1);
}

/* An exec is reported once; an exec that was missed is noticed. */
static void another_image(void **state)
{
	const struct process_event exec = { .h = { .kind = EVENT_EXEC, .pid = 9, .tid = 9 } };
	struct world *w = *state;

	write_process(w, 5, "/bin/x");
	write_rec(w, STREAM_EXEC, &exec);
	write_process(w, 5, "/bin/y");
	assert_int_equal(feed(w), 0);
	assert_int_equal(w->nr_seen, 1);
	saw(w, 0, EVENT_EXEC, 0);
	restart(w, true);
	write_process(w, 5, "/bin/z");
	assert_int_equal(feed(w), 0);
	assert_int_equal(w->nr_seen, 1);
	saw(w, 0, EVENT_EXEC, 0);
}

static void refuses(struct world *w)
{
	assert_int_not_equal(feed(w), 0);
	assert_true(strlen(remote_stream_why(w->source)) > 0);
}

static void overlapping_mappings(void **state)
{
	const struct stream_maps maps = { .pid = 9, .nr = 2 };
	const struct stream_mapping m = { .start = 0x1000, .end = 0x3000 };
	struct world *w = *state;

	write_process(w, 5, "/bin/x");
	write_rec(w, STREAM_MAPS, &maps);
	write_rec(w, STREAM_MAPPING, &m);
	write_rec(w, STREAM_MAPPING, &m);
	refuses(w);
}

static void too_many_mappings(void **state)
{
	const struct stream_maps maps = { .pid = 9, .nr = UINT32_MAX };
	struct world *w = *state;

	write_process(w, 5, "/bin/x");
	write_rec(w, STREAM_MAPS, &maps);
	refuses(w);
}

static void mappings_of_nobody(void **state)
{
	const struct stream_maps maps = { .pid = 8, .nr = 1 };
	struct world *w = *state;

	write_process(w, 5, "/bin/x");
	write_rec(w, STREAM_MAPS, &maps);
	refuses(w);
}

/* A connection that is lost in the middle of a list does not damage the next list. */
static void broken_off_in_mappings(void **state)
{
	const struct stream_maps maps = { .pid = 9, .nr = 2 };
	struct world *w = *state;

	write_process(w, 5, "/bin/x");
	write_rec(w, STREAM_MAPS, &maps);
	assert_int_equal(feed(w), 0);
	restart(w, true);
	write_process(w, 5, "/bin/x");
	write_module(w, "/lib/x.so");
	write_maps(w, 0x30000);
	assert_int_equal(feed(w), 0);
	saw(w, 0, EVENT_MAPS, 0);
}

static void too_many_processes(void **state)
{
	struct world *w = *state;

	for (u32 pid = 1; pid <= 10000; pid++) {
		const struct stream_process p = { .pid = pid, .comm = "x", .exe = "x" };

		write_rec(w, STREAM_PROCESS, &p);
	}
	refuses(w);
	assert_non_null(strstr(remote_stream_why(w->source), ": too many processes"));
}

/* A process executes programs again and again: a session keeps each of them. */
static void too_many_programs(void **state)
{
	struct world *w = *state;
	struct target *t;
	int nr = 0, err;

	write_process(w, 5, "/bin/x");
	write_module(w, "/lib/x.so");
	write_maps(w, 0x10000);
	assert_int_equal(feed(w), 0);
	while (!(err = remote_stream_target(w->source, 9, &t)) && nr < 100000) {
		target_free(t);
		nr++;
	}
	assert_int_equal(err, -E2BIG);
	assert_in_range(nr, 10000, 20000);
}

/* The programs of a process that has ended are not counted any more: the session drops them. */
static void ended_programs(void **state)
{
	struct world *w = *state;
	struct target *t;

	for (u32 pid = 1000; pid < 31000; pid++) {
		const struct stream_process p = { .pid = pid, .comm = "x", .exe = "x" };
		const struct process_event end = { .h = { .kind = EVENT_EXIT, .pid = pid, .tid = pid } };

		write_rec(w, STREAM_PROCESS, &p);
		write_rec(w, STREAM_EXIT, &end);
		assert_int_equal(feed(w), 0);
		assert_int_equal(remote_stream_target(w->source, (pid_t)pid, &t), 0);
		target_free(t);
		remote_stream_forget(w->source, (pid_t)pid);
		w->nr_seen = 0;
	}
}

/* Each stream alone is within the limit, all of them together are not. */
static void too_many_modules(void **state)
{
	struct world *w = *state;
	struct stream_module m = { .path = "/lib/x.so" };
	int err = 0;

	for (int round = 0; round < 4 && !err; round++) {
		if (round)
			restart(w, true);
		for (m.module = 1; m.module <= 5000; m.module++) {
			m.ino++;
			write_rec(w, STREAM_MODULE, &m);
		}
		err = feed(w);
	}
	assert_int_equal(err, -EBADMSG);
	assert_non_null(strstr(remote_stream_why(w->source), ": too many files"));
	assert_true(module_count(w->modules) <= 16384);
}

static void write_child(struct world *w, u32 parent, u32 pid, u64 start_time, u8 flags)
{
	const struct process_event fork = {
		.h = { .kind = EVENT_FORK, .flags = flags, .pid = parent, .tid = parent }, .child_pid = pid
	};
	const struct stream_process p = {
		.pid = pid, .start_time = start_time, .comm = "y", .exe = "/bin/y"
	};

	write_rec(w, STREAM_FORK, &fork);
	write_rec(w, STREAM_PROCESS, &p);
}

static void write_end(struct world *w, u32 pid)
{
	const struct process_event end = { .h = { .kind = EVENT_EXIT, .pid = pid, .tid = pid },
					   .exit_status = 3 };

	write_rec(w, STREAM_EXIT, &end);
}

/* The birth of a child comes when its program is known, and says whether it is a copy. */
static void children(void **state)
{
	struct world *w = *state;
	struct target *t;

	write_process(w, 5, "/bin/x");
	write_child(w, 9, 10, 6, 0);
	write_child(w, 10, 11, 7, EVENT_NO_COPY);
	assert_int_equal(feed(w), 0);
	assert_int_equal(w->nr_seen, 2);
	assert_int_equal(w->seen[0].h.kind, EVENT_FORK);
	assert_int_equal(w->seen[0].life.child_pid, 10);
	assert_int_equal(w->seen[0].h.flags, 0);
	assert_int_equal(w->seen[1].life.child_pid, 11);
	assert_int_equal(w->seen[1].h.flags, EVENT_NO_COPY);
	assert_int_equal(remote_stream_target(w->source, 11, &t), 0);
	assert_string_equal(t->exe, "/bin/y");
	assert_int_equal(t->start_time, 7);
	target_free(t);
}

/* A process whose end was read is known until the session has taken the end, and has not to be told again. */
static void ends_of_children(void **state)
{
	const struct stream_losses l = { .pid = 10, .l.allocs = 4 };
	struct world *w = *state;

	write_process(w, 5, "/bin/x");
	write_child(w, 9, 10, 6, 0);
	write_rec(w, STREAM_LOSSES, &l);
	write_end(w, 10);
	assert_int_equal(feed(w), 0);
	assert_int_equal(w->nr_seen, 3);
	assert_int_equal(w->seen[2].h.kind, EVENT_EXIT);
	assert_int_equal(w->seen[2].life.exit_status, 3);
	assert_int_equal(remote_stream_losses(w->source, 10).allocs, 4);
	remote_stream_received(w->source, &received);
	assert_int_equal(received.nr_had, 1);
	assert_int_equal(received.nr_ends, 1);
	remote_stream_forget(w->source, 10);
	assert_int_equal(remote_stream_losses(w->source, 10).allocs, 0);
	remote_stream_forget(w->source, 9);
	remote_stream_received(w->source, &received);
	assert_int_equal(received.nr_had, 1);
}

/* The limit of mappings is for those at a time. */
static void mappings_of_many_children(void **state)
{
	enum { NR_MAPS = 60000 };
	struct world *w = *state;

	write_process(w, 5, "/bin/x");
	for (u32 pid = 10; pid < 40; pid++) {
		const struct stream_maps maps = { .pid = pid, .nr = NR_MAPS };

		write_child(w, 9, pid, pid, 0);
		write_rec(w, STREAM_MAPS, &maps);
		for (u64 i = 0; i < NR_MAPS; i++) {
			const struct stream_mapping m = { .start = i << 12, .end = (i + 1) << 12 };

			write_rec(w, STREAM_MAPPING, &m);
		}
		write_end(w, pid);
		assert_int_equal(feed(w), 0);
		remote_stream_forget(w->source, (pid_t)pid);
		w->nr_seen = 0;
	}
}

/* A child whose PID another one has got has ended, though its end was not told. */
static void pid_of_a_child_again(void **state)
{
	struct world *w = *state;

	write_process(w, 5, "/bin/x");
	write_child(w, 9, 10, 6, 0);
	write_child(w, 9, 10, 8, 0);
	assert_int_equal(feed(w), 0);
	assert_int_equal(w->nr_seen, 3);
	assert_int_equal(w->seen[1].h.kind, EVENT_EXIT);
	assert_int_equal(w->seen[1].h.pid, 10);
	assert_int_equal(w->seen[2].h.kind, EVENT_FORK);
	remote_stream_received(w->source, &received);
	assert_int_equal(received.nr_had, 2);
	assert_int_equal(received.nr_ends, 0);
	assert_int_equal(received.had[1].start_time, 8);
}

/* Events of a PID that was used again are those of the new process, and of the old one nothing is left (G4). */
static void events_of_a_pid_again(void **state)
{
	struct world *w = *state;

	w->forgets = true;
	write_process(w, 5, "/bin/x");
	write_child(w, 9, 10, 6, 0);
	write_alloc_of(w, 10, 0x5000);
	write_child(w, 9, 10, 8, 0);
	write_alloc_of(w, 10, 0x6000);
	write_alloc_of(w, 10, 0x7000);
	assert_int_equal(feed(w), 0);
	remote_stream_received(w->source, &received);
	assert_int_equal(received.nr_had, 2);
	assert_int_equal(received.had[1].start_time, 8);
	assert_int_equal(received.had[1].allocs, 2);
	/* Nothing is left of the old one. */
	write_end(w, 10);
	assert_int_equal(feed(w), 0);
	assert_int_equal(remote_stream_target(w->source, 10, &(struct target *){ NULL }), -ESRCH);
}

static void child_of_nobody(void **state)
{
	struct world *w = *state;

	write_process(w, 5, "/bin/x");
	write_child(w, 8, 10, 6, 0);
	refuses(w);
}

/* Neither the end nor a program of a process that was not named is passed on, nor counted (G4). */
static void life_of_nobody(void **state)
{
	const struct process_event exec = { .h = { .kind = EVENT_EXEC, .pid = 8, .tid = 8 } };
	struct world *w = *state;

	write_process(w, 5, "/bin/x");
	write_rec(w, STREAM_EXEC, &exec);
	write_end(w, 8);
	assert_int_equal(feed(w), 0);
	assert_int_equal(w->nr_seen, 0);
	remote_stream_received(w->source, &received);
	assert_int_equal(received.nr_ends, 0);
}

/* The reason is the same as for a recording. */
static void losses_of_nobody(void **state)
{
	struct world *w = *state;

	write_losses(w, 1, 0, 0);
	refuses(w);
	assert_non_null(strstr(remote_stream_why(w->source), ": losses of a process that is not there"));
}

static void child_of_itself(void **state)
{
	struct world *w = *state;

	write_process(w, 5, "/bin/x");
	write_child(w, 9, 9, 6, 0);
	refuses(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(in_order, begin, end),
		cmocka_unit_test_setup_teardown(continued, begin, end),
		cmocka_unit_test_setup_teardown(anew, begin, end),
		cmocka_unit_test_setup_teardown(another_image, begin, end),
		cmocka_unit_test_setup_teardown(overlapping_mappings, begin, end),
		cmocka_unit_test_setup_teardown(too_many_mappings, begin, end),
		cmocka_unit_test_setup_teardown(mappings_of_nobody, begin, end),
		cmocka_unit_test_setup_teardown(broken_off_in_mappings, begin, end),
		cmocka_unit_test_setup_teardown(too_many_processes, begin, end),
		cmocka_unit_test_setup_teardown(too_many_programs, begin, end),
		cmocka_unit_test_setup_teardown(ended_programs, begin, end),
		cmocka_unit_test_setup_teardown(too_many_modules, begin, end),
		cmocka_unit_test_setup_teardown(children, begin, end),
		cmocka_unit_test_setup_teardown(ends_of_children, begin, end),
		cmocka_unit_test_setup_teardown(mappings_of_many_children, begin, end),
		cmocka_unit_test_setup_teardown(pid_of_a_child_again, begin, end),
		cmocka_unit_test_setup_teardown(events_of_a_pid_again, begin, end),
		cmocka_unit_test_setup_teardown(child_of_nobody, begin, end),
		cmocka_unit_test_setup_teardown(child_of_itself, begin, end),
		cmocka_unit_test_setup_teardown(life_of_nobody, begin, end),
		cmocka_unit_test_setup_teardown(losses_of_nobody, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A session takes no more of a recording than its limit of memory allows (F4). */
#include "user/session/source_recording.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "user/heap/heap_sample.h"
#include "user/session/session_process.h"
#include "user/stream/stream_record.h"
#include "user/target/allocator.h"
#include "user/lib/log.h"
#include "user/session/session_private.h"
#include "user/stream/stream_write.h"

enum { PARENT = 9, NR_BLOCKS = 20000, MAX_MEMORY = 16 << 20 };

struct world {
	struct session_options options;
	struct session *session;
	struct alloc_table *fns; /* of the writer */
	struct stream_writer *writer;
	int err; /* of what came in */
};

static int feed(void *ctx, const void *data, size_t len)
{
	struct world *w = ctx;

	if (!w->err)
		w->err = source_recording_feed(w->session->source, data, len);
	return 0;
}

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	struct stream_writer_options o = { .ctx = w, .write = feed, .chunk_bytes = 4096 };

	*state = w;
	log_set_level(LOG_ERROR);
	if (!w)
		return -1;
	w->options.command = "report";
	if (session_alloc(&w->session, &w->options, NULL))
		return -1;
	if (alloc_table_new(&w->fns))
		return -1;
	o.fns = w->fns;
	w->session->is_replayed = true;
	w->session->ops = &source_recording;
	return source_recording_new(&w->session->source, w->session, MAX_MEMORY, NULL) ||
	       stream_writer_new(&w->writer, &o);
}

static int teardown(void **state)
{
	struct world *w = *state;

	stream_writer_free(w->writer);
	session_free(w->session);
	alloc_table_free(w->fns);
	free(w);
	return 0;
}

static void write_beginning(struct world *w)
{
	const struct stream_hello hello = { .id = 7, .mono_ns = 1000, .backend = "bpf" };
	const struct stream_process p = { .pid = PARENT, .word_size = 8, .comm = "x", .exe = "/bin/x" };
	struct heap_event ev = { .h = { .kind = EVENT_ALLOC, .pid = PARENT, .tid = PARENT }, .size = 16 };

	ev.h.fn = alloc_fn_find(NULL, "malloc");
	assert_int_equal(stream_write(w->writer, STREAM_HELLO, &hello), 0);
	assert_int_equal(stream_write(w->writer, STREAM_PROCESS, &p), 0);
	for (int i = 1; i <= NR_BLOCKS; i++) {
		ev.addr = 0x10000 + (u64)i * 32;
		ev.time_ns = 2000 + (u64)i * 1000;
		assert_int_equal(stream_write_event(w->writer, &ev.h, sizeof(ev)), 0);
	}
	assert_int_equal(stream_flush(w->writer), 0);
	assert_int_equal(w->err, 0);
}

/* A recording of a process whose one call is of @symbol. */
static void write_custom(struct world *w, const char *symbol, enum alloc_kind kind)
{
	const struct alloc_fn row = { symbol, symbol, kind, FAMILY_CUSTOM, .size_arg = 1 };
	const struct stream_hello hello = { .id = 7, .mono_ns = 1000, .backend = "bpf" };
	const struct stream_process p = { .pid = PARENT, .word_size = 8, .comm = "x", .exe = "/bin/x" };
	struct heap_event ev = { .h = { .kind = EVENT_ALLOC, .pid = PARENT, .tid = PARENT },
				 .addr = 0x10000,
				 .size = 16 };

	ev.h.fn = (u16)alloc_fn_add(w->fns, &row);
	assert_int_equal(stream_write(w->writer, STREAM_HELLO, &hello), 0);
	assert_int_equal(stream_write(w->writer, STREAM_PROCESS, &p), 0);
	assert_int_equal(stream_write_event(w->writer, &ev.h, sizeof(ev)), 0);
	assert_int_equal(stream_flush(w->writer), 0);
	assert_int_equal(w->err, 0);
}

static const struct alloc_fn *first_caller(const struct session *s)
{
	const struct heap *heap = s->processes[0]->heap;

	return alloc_fn(heap_functions(heap), heap_row_get(heap, 0).fn);
}

/* Two recordings in one process of heaptap, each with a function of its own, as in a diff. */
static void two_with_custom_functions(void **state)
{
	struct world *w = *state;
	struct world *other;
	void *second;

	assert_int_equal(setup(&second), 0);
	other = second;
	write_custom(w, "pool_get", ALLOC_MALLOC);
	write_custom(other, "map_arena", ALLOC_MMAP);
	assert_string_equal(first_caller(w->session)->name, "pool_get");
	assert_string_equal(first_caller(other->session)->name, "map_arena");
	assert_int_equal(first_caller(other->session)->kind, ALLOC_MMAP);
	assert_int_equal(alloc_fn_find(w->session->fns, "map_arena"), 0);
	assert_int_equal(alloc_fn_find(other->session->fns, "pool_get"), 0);
	teardown(&second);
	assert_string_equal(first_caller(w->session)->name, "pool_get");
}

static u64 books(const struct session *s)
{
	u64 bytes = 0;

	for (size_t i = 0; i < s->nr_processes; i++)
		bytes += heap_memory(s->processes[i]->heap);
	return bytes;
}

/* A few bytes each, and each child has a copy of its parent's books (F5). */
static void children_with_large_books(void **state)
{
	struct world *w = *state;
	struct process_event ev = { .h = { .kind = EVENT_FORK, .pid = PARENT, .tid = PARENT },
				    .time_ns = 1000000000 };

	write_beginning(w);
	for (u32 i = 0; i < 1000 && !w->err; i++) {
		ev.child_pid = 100 + i;
		assert_int_equal(stream_write(w->writer, STREAM_FORK, &ev), 0);
		assert_int_equal(stream_flush(w->writer), 0);
	}
	assert_int_equal(w->err, -ENOMEM);
	assert_non_null(strstr(source_recording_why(w->session->source), "--max-memory"));
	/* The parent, and some of them. */
	assert_true(w->session->nr_processes > 2);
	assert_true(books(w->session) < MAX_MEMORY + MAX_MEMORY / 4);
}

/* An image of a process has the mappings of the image before until its own are read (F5). */
static void programs_with_many_mappings(void **state)
{
	enum { NR_MAPS = 60000 };
	struct world *w = *state;
	const struct stream_maps maps = { .pid = PARENT, .nr = NR_MAPS };
	const struct process_event ev = { .h = { .kind = EVENT_EXEC, .pid = PARENT, .tid = PARENT },
					  .time_ns = 1000000000 };

	write_beginning(w);
	for (int round = 0; round < 20; round++) {
		assert_int_equal(stream_write(w->writer, STREAM_MAPS, &maps), 0);
		for (u64 i = 0; i < NR_MAPS; i++) {
			const struct stream_mapping m = { .start = i << 16, .end = (i << 16) + 4096 };

			assert_int_equal(stream_write(w->writer, STREAM_MAPPING, &m), 0);
		}
	}
	assert_int_equal(stream_flush(w->writer), 0);
	/* Read anew they take the place of those before. */
	assert_int_equal(w->err, 0);
	for (int i = 0; i < 20 && !w->err; i++) {
		assert_int_equal(stream_write(w->writer, STREAM_EXEC, &ev), 0);
		assert_int_equal(stream_flush(w->writer), 0);
	}
	assert_int_equal(w->err, -EBADMSG);
	assert_true(w->session->nr_processes > 2);
}

static void write_losses(struct world *w, u64 allocs, u64 other, u64 abandoned)
{
	const struct stream_losses l = { .pid = PARENT,
					 .l = { .allocs = allocs, .other = other, .abandoned = abandoned } };

	assert_int_equal(stream_write(w->writer, STREAM_LOSSES, &l), 0);
	assert_int_equal(stream_flush(w->writer), 0);
}

/* Losses fall from one image to the next: of those of the second there are none, and not 2^64 (F5). */
static void losses_that_fall(void **state)
{
	struct world *w = *state;
	const struct process_event ev = { .h = { .kind = EVENT_EXEC, .pid = PARENT, .tid = PARENT } };

	write_beginning(w);
	write_losses(w, 5, 3, 3);
	assert_int_equal(stream_write(w->writer, STREAM_EXEC, &ev), 0);
	write_losses(w, 1, 0, 0);
	assert_int_equal(w->err, 0);
	assert_int_equal(w->session->nr_processes, 2);
	session_read_losses(w->session, w->session->processes[1]);
	assert_int_equal(w->session->processes[0]->lost.now.allocs, 5);
	assert_int_equal(w->session->processes[1]->lost.now.allocs, 0);
	assert_int_equal(w->session->processes[1]->lost.now.other, 0);
}

/* More calls that never returned than calls that are missing; children that cannot be (F5). */
static void impossible_records(void **state)
{
	const struct process_event children[] = { { .h.pid = PARENT },
						  { .h.pid = PARENT, .child_pid = PARENT },
						  { .h.pid = PARENT, .child_pid = 1U << 31 } };
	void *other;

	(void)state;
	for (size_t i = 0; i <= ARRAY_SIZE(children); i++) {
		struct world *w;

		assert_int_equal(setup(&other), 0);
		w = other;
		write_beginning(w);
		if (i < ARRAY_SIZE(children))
			assert_int_equal(stream_write(w->writer, STREAM_FORK, &children[i]), 0);
		else
			write_losses(w, 0, 1, 2);
		assert_int_equal(stream_flush(w->writer), 0);
		assert_int_equal(w->err, -EBADMSG);
		assert_non_null(strstr(source_recording_why(w->session->source), "that cannot be"));
		teardown(&other);
	}
}

/* A child whose parent is not in the recording: also none of a process that runs on this machine (F5). */
static void children_of_nobody(void **state)
{
	const struct process_event forks[] = { { .h.pid = PARENT + 1, .child_pid = 100 },
					       { .h.pid = 0, .child_pid = (u32)getpid() } };
	void *other;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(forks); i++) {
		struct world *w;

		assert_int_equal(setup(&other), 0);
		w = other;
		write_beginning(w);
		assert_int_equal(stream_write(w->writer, STREAM_FORK, &forks[i]), 0);
		assert_int_equal(stream_flush(w->writer), 0);
		assert_int_equal(w->session->nr_processes, 1);
		assert_int_equal(w->err, -EBADMSG);
		assert_non_null(strstr(source_recording_why(w->session->source),
				       ": a child of a process that is not there"));
		teardown(&other);
	}
}

/* The end of a child was lost, another one got its PID: both are in the report, as while it was traced (F4). */
static void pid_of_a_child_again(void **state)
{
	const struct process_event fork = { .h = { .kind = EVENT_FORK, .pid = PARENT, .tid = PARENT },
					    .time_ns = 30000000,
					    .child_pid = 100 };
	const struct stream_process p = { .pid = 100, .word_size = 8, .comm = "y", .exe = "/bin/y" };
	struct heap_event ev = { .h = { .kind = EVENT_ALLOC, .pid = 100, .tid = 100 },
				 .addr = 8,
				 .size = 16 };
	struct world *w = *state;

	write_beginning(w);
	ev.h.fn = alloc_fn_find(NULL, "malloc");
	for (ev.time_ns = 30000001; ev.time_ns < 30000004; ev.time_ns++) {
		if (ev.time_ns < 30000003) {
			assert_int_equal(stream_write(w->writer, STREAM_FORK, &fork), 0);
			assert_int_equal(stream_write(w->writer, STREAM_PROCESS, &p), 0);
		}
		ev.addr += 32;
		assert_int_equal(stream_write_event(w->writer, &ev.h, sizeof(ev)), 0);
	}
	assert_int_equal(stream_flush(w->writer), 0);
	assert_int_equal(w->err, 0);
	assert_int_equal(w->session->nr_processes, 3);
	assert_int_equal(heap_totals(w->session->processes[1]->heap).allocs, NR_BLOCKS + 1);
	assert_true(w->session->processes[1]->target->has_exited);
	assert_int_equal(heap_totals(w->session->processes[2]->heap).allocs, NR_BLOCKS + 2);
}

/* A recording that breaks off ends at its latest record, be a later one of an earlier time (F4). */
static void time_that_goes_back(void **state)
{
	const struct process_event end = { .h = { .kind = EVENT_EXIT, .pid = PARENT }, .time_ns = 1500 };
	struct world *w = *state;

	write_beginning(w);
	assert_int_equal(stream_write(w->writer, STREAM_EXIT, &end), 0);
	assert_int_equal(stream_flush(w->writer), 0);
	assert_int_equal(w->err, 0);
	assert_int_equal(source_recording_finish(w->session->source), -ENODATA);
	assert_int_equal(w->session->stop_ns, 2000 + NR_BLOCKS * 1000);
}

/* A recording of samples has estimates, and releases that cannot be checked. */
static void samples(void **state)
{
	const struct stream_process p = { .pid = PARENT, .word_size = 8, .comm = "x", .exe = "/bin/x" };
	const struct stream_hello hello = { .mono_ns = 1000, .backend = "inline", .sample_bytes = 4096 };
	struct heap_event ev = { .h = { .kind = EVENT_ALLOC, .pid = PARENT, .tid = PARENT },
				 .addr = 0x10000,
				 .time_ns = 2000,
				 .size = 8192 };
	void *other;
	struct world *w = *state, *strict;

	ev.h.fn = alloc_fn_find(NULL, "malloc");
	assert_int_equal(stream_write(w->writer, STREAM_HELLO, &hello), 0);
	assert_int_equal(stream_write(w->writer, STREAM_PROCESS, &p), 0);
	ev.h.distance = SAMPLE_DRAWN | SAMPLE_MORE;
	assert_int_equal(stream_write_event(w->writer, &ev.h, sizeof(ev)), 0);
	assert_int_equal(stream_flush(w->writer), 0);
	assert_int_equal(w->err, 0);
	assert_int_equal(heap_sample_bytes(w->session->processes[0]->heap), 4096);
	assert_false(heap_is_checked(w->session->processes[0]->heap));
	/* One in 1.16 such blocks is no sample. */
	assert_int_equal(heap_totals(w->session->processes[0]->heap).allocs, 2);
	assert_in_range(heap_totals(w->session->processes[0]->heap).alloc_bytes, 9400, 9500);

	assert_int_equal(setup(&other), 0);
	strict = other;
	strict->options.source.check = CHECK_ALWAYS;
	assert_int_equal(stream_write(strict->writer, STREAM_HELLO, &hello), 0);
	assert_int_equal(stream_flush(strict->writer), 0);
	assert_int_equal(strict->err, -EOPNOTSUPP);
	assert_non_null(
		strstr(source_recording_why(strict->session->source), "blocks are sampled: releases"));
	teardown(&other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(two_with_custom_functions, setup, teardown),
		cmocka_unit_test_setup_teardown(children_with_large_books, setup, teardown),
		cmocka_unit_test_setup_teardown(programs_with_many_mappings, setup, teardown),
		cmocka_unit_test_setup_teardown(losses_that_fall, setup, teardown),
		cmocka_unit_test(impossible_records),
		cmocka_unit_test(children_of_nobody),
		cmocka_unit_test_setup_teardown(time_that_goes_back, setup, teardown),
		cmocka_unit_test_setup_teardown(pid_of_a_child_again, setup, teardown),
		cmocka_unit_test_setup_teardown(samples, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

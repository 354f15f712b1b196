/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The tape gives back what was put on it; that of a heap agrees with its totals, also after a fork. */
#include "user/heap/tape.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <signal.h>

#include <cmocka.h>

#include "user/heap/heap.h"

enum { NR = 100000, NS_PER_MS = 1000000 };

static struct tape_entry entry(u64 i)
{
	return (struct tape_entry){ .time_ms = 5000 + i / 7 * 3,
				    .bytes = i % 3 ? i % 500 : i * i * i,
				    .row = (u32)(i % 1000),
				    .is_free = i & 1 };
}

static struct tape_entry slots[TAPE_SLOTS_MAX];

/* Most entries have the row and bytes of one before: their slots say which. Returns how many do. */
static u64 check(struct tape *t, u64 nr)
{
	struct tape_entry e;
	u64 nr_known = 0;

	assert_int_equal(tape_rewind(t), 0);
	for (u64 i = 0; i < nr; i++) {
		const struct tape_entry want = entry(i);

		assert_int_equal(tape_next(t, &e), 1);
		assert_int_equal(e.time_ms, want.time_ms);
		assert_int_equal(e.is_free, want.is_free);
		assert_true(e.slot < TAPE_SLOTS_MAX);
		if (e.is_new)
			slots[e.slot] = e;
		assert_int_equal(slots[e.slot].row, want.row);
		assert_int_equal(slots[e.slot].bytes, want.bytes);
		nr_known += !e.is_new;
	}
	assert_int_equal(tape_next(t, &e), 0);
	return nr_known;
}

static void put(struct tape *t, u64 from, u64 to)
{
	for (u64 i = from; i < to; i++)
		tape_put(t, &(struct tape_entry){ entry(i).time_ms, entry(i).bytes, entry(i).row, i & 1 });
}

static void entries_come_back(void **state)
{
	struct tape *t, *copy;

	(void)state;
	assert_int_equal(tape_new(&t), 0);
	check(t, 0);
	put(t, 0, NR / 2);
	check(t, NR / 2);
	/* Reports are written while events go on. */
	put(t, NR / 2, NR);
	assert_int_equal(tape_copy(&copy, t), 0);
	/* Two of three are of 1,000 pairs of row and bytes. */
	assert_true(check(t, NR) > NR / 2);
	check(copy, NR);
	put(copy, NR, NR + 9);
	check(copy, NR + 9);
	check(t, NR);
	put(t, NR, NR + 5);
	check(t, NR + 5);
	tape_reset(t);
	check(t, 0);
	put(t, 0, 10);
	check(t, 10);
	tape_free(t);
	tape_free(copy);
	tape_free(NULL);
}

/* A tape that is not whole is never shown as one. */
static void a_full_disk_is_an_error(void **state)
{
	struct rlimit old, small;
	struct tape *t, *copy;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	small = (struct rlimit){ 4096, old.rlim_max };
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	assert_int_equal(tape_new(&t), 0);
	put(t, 0, NR);
	assert_int_equal(tape_rewind(t), -EFBIG);
	assert_int_equal(tape_copy(&copy, t), 0);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	put(t, 0, 1);
	assert_int_equal(tape_rewind(t), -EFBIG);
	assert_int_equal(tape_rewind(copy), -EFBIG);
	tape_free(t);
	tape_free(copy);
}

static struct heap *heap;

static void event(u8 kind, const char *function, u64 addr, u64 size, u64 ms)
{
	const struct heap_event ev = {
		.h = { .kind = kind, .fn = alloc_fn_find(NULL, function), .pid = 1, .tid = 1 },
		.time_ns = ms * NS_PER_MS,
		.addr = addr,
		.size = size,
		.stack = 100,
	};

	assert_int_equal(heap_event(heap, &ev), 0);
}

/* Replay the tape of @h as a reader of its file does. */
static void check_totals(const struct heap *h)
{
	struct heap_totals totals = heap_totals(h);
	u64 allocs = 0, live = 0, peak = 0, peak_ms = 0;
	struct tape_entry e;
	int got;

	assert_int_equal(tape_rewind(heap_tape(h)), 0);
	while ((got = tape_next(heap_tape(h), &e)) == 1) {
		if (e.is_new)
			slots[e.slot] = e;
		assert_true(slots[e.slot].row < heap_row_count(h));
		allocs += !e.is_free;
		live += e.is_free ? 0 - slots[e.slot].bytes : slots[e.slot].bytes;
		if (live > peak) {
			peak = live;
			peak_ms = e.time_ms;
		}
	}
	assert_int_equal(got, 0);
	assert_int_equal(allocs, totals.allocs);
	assert_int_equal(live, totals.live_bytes);
	assert_int_equal(peak, totals.peak_bytes);
	assert_int_equal(peak_ms, totals.peak_time_ns / NS_PER_MS);
}

static void the_tape_of_a_heap_has_its_totals(void **state)
{
	struct heap *child;

	(void)state;
	assert_int_equal(heap_new(&heap, NULL), 0);
	assert_null(heap_tape(heap));
	assert_int_equal(heap_keep_tape(heap), 0);
	for (u64 i = 1; i < 1000; i++)
		event(EVENT_ALLOC, "malloc", 0x1000 * i, i, 10 + i);
	for (u64 i = 1; i < 900; i++)
		event(EVENT_FREE, "free", 0x1000 * i, 0, 2000 + i);
	event(EVENT_FREE, "free", 0xdead, 0, 3000);	      /* not known */
	event(EVENT_ALLOC, "malloc", 0x1000 * 950, 77, 3001); /* its free was lost */
	event(EVENT_ALLOC, "mmap", 0x10000000, 0x10000, 3002);
	assert_int_equal(heap_clone(&child, heap), 0);
	event(EVENT_ALLOC, "malloc", 0x99999000, 1000000, 4000);
	check_totals(heap);
	check_totals(child);
	assert_int_not_equal(heap_totals(heap).allocs, heap_totals(child).allocs);
	heap_free(child);
	heap_span_begin(heap);
	event(EVENT_FREE, "free", 0x99999000, 0, 5000); /* from before the span */
	event(EVENT_ALLOC, "malloc", 0x88888000, 3, 5001);
	check_totals(heap);
	assert_int_equal(heap_totals(heap).allocs, 1);
	heap_free(heap);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(entries_come_back),
		cmocka_unit_test(a_full_disk_is_an_error),
		cmocka_unit_test(the_tape_of_a_heap_has_its_totals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

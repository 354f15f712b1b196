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
#include "user/lib/digits.h"

enum { NR = 100000, NS_PER_MS = 1000000 };

static struct tape_entry entry(u64 i)
{
	return (struct tape_entry){ .time_ms = 5000 + i / 7 * 3,
				    .bytes = i % 3 ? i % 500 : i * i * i,
				    .row = (u32)(i % 1000),
				    .is_free = i & 1 };
}

enum { MAX_KINDS = 200000 };

/* One that reads a tape as the file of heaptrack is read. */
static struct {
	struct tape *tape;
	struct tape_part part;
	struct tape_entry kinds[MAX_KINDS];
	size_t nr_kinds;
	u64 time_ms;
} r;

static void rewind_to(struct tape *t)
{
	assert_int_equal(tape_rewind(t), 0);
	r.tape = t;
	r.part.len = r.nr_kinds = r.time_ms = 0;
}

/* The next event, as one entry. False at the end. */
static bool next(struct tape_entry *e)
{
	u64 kind;

	while (!r.part.len) {
		int got = tape_next(r.tape, &r.part);

		if (!got)
			return false;
		assert_int_equal(got, 1);
		if (r.part.what == TAPE_TIME)
			r.time_ms = r.part.time_ms;
		if (r.part.what == TAPE_KIND) {
			assert_true(r.nr_kinds < MAX_KINDS);
			r.kinds[r.nr_kinds++] =
				(struct tape_entry){ .bytes = r.part.bytes, .row = r.part.row };
		}
	}
	assert_true((r.part.lines[0] == '+' || r.part.lines[0] == '-') && r.part.lines[1] == ' ');
	const char *end = digits_get_bare_hex(r.part.lines + 2, r.part.lines + r.part.len, &kind);

	assert_non_null(end);
	assert_true(kind < r.nr_kinds && *end == '\n');
	*e = r.kinds[kind];
	e->is_free = r.part.lines[0] == '-';
	e->time_ms = r.time_ms;
	r.part.len -= (size_t)(end + 1 - r.part.lines);
	r.part.lines = end + 1;
	return true;
}

/* Returns how many kinds there are. */
static size_t check(struct tape *t, u64 nr)
{
	struct tape_entry e;

	rewind_to(t);
	for (u64 i = 0; i < nr; i++) {
		const struct tape_entry want = entry(i);

		assert_true(next(&e));
		assert_int_equal(e.time_ms, want.time_ms);
		assert_int_equal(e.is_free, want.is_free);
		assert_int_equal(e.row, want.row);
		assert_int_equal(e.bytes, want.bytes);
	}
	assert_false(next(&e));
	return r.nr_kinds;
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
	/* Two of three are of 1,000 pairs of row and bytes, the others are of their own. */
	assert_in_range(check(t, NR), NR / 3, NR / 3 + 3000);
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

/* Hot kinds keep their numbers among a million others, which are more than the table holds. */
static void frequent_kinds_have_one_number(void **state)
{
	struct tape_entry e;
	struct tape *t;
	size_t nr = 0;

	(void)state;
	assert_int_equal(tape_new(&t), 0);
	for (u64 i = 0; i < 1000000; i++) {
		tape_put(t, &(struct tape_entry){ .bytes = 16 + i % 10, .row = 7 });
		tape_put(t, &(struct tape_entry){ .bytes = 100 + (i & ~1ULL), .row = (u32)(i % 5000) });
	}
	assert_int_equal(tape_rewind(t), 0);
	while (tape_next(t, &r.part) == 1)
		nr += r.part.what == TAPE_KIND && r.part.row == 7 && r.part.bytes < 100;
	assert_int_equal(nr, 10);
	tape_free(t);
	/* Sizes too large for the table. */
	assert_int_equal(tape_new(&t), 0);
	tape_put(t, &(struct tape_entry){ .bytes = UINT64_MAX, .row = 3 });
	tape_put(t, &(struct tape_entry){ .bytes = UINT64_MAX, .row = 3, .is_free = true });
	rewind_to(t);
	for (int i = 0; i < 2; i++) {
		assert_true(next(&e));
		assert_true(e.bytes == UINT64_MAX && e.row == 3 && e.is_free == (i == 1));
	}
	assert_false(next(&e));
	tape_free(t);
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

	rewind_to(heap_tape(h));
	while (next(&e)) {
		assert_true(e.row < heap_row_count(h));
		allocs += !e.is_free;
		live += e.is_free ? 0 - e.bytes : e.bytes;
		if (live > peak) {
			peak = live;
			peak_ms = e.time_ms;
		}
	}
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
		cmocka_unit_test(frequent_kinds_have_one_number),
		cmocka_unit_test(a_full_disk_is_an_error),
		cmocka_unit_test(the_tape_of_a_heap_has_its_totals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

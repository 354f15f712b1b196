/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Counts of callers in slices of time, against a list of all events: bounded, none lost, none counted twice. */
#include "tests/unit/books.h"

#include "user/heap/slices.h"

enum { NR_EVENTS = 100000, NR_BLOCKS = 1000, NR_STACKS = 300 };

/* All events that were entered, in order. */
static struct {
	u64 time_ns;
	u32 row;
	struct slice_counts did;
} told[NR_EVENTS];
static u64 random_state = 88172645463325252ULL;

static u32 below(u32 n)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (random_state >> 16) % n;
}

/* Enter random events @from to @to - 1. Rows have the numbers of their stacks. */
static void enter_random(struct heap *h, size_t from, size_t to)
{
	u64 now = from ? told[from - 1].time_ns : 5 * MS;

	for (size_t i = from; i < to; i++) {
		taddr_t addr = (below(NR_BLOCKS) + 1) * 16;
		struct heap_event ev = event(EVENT_ALLOC, fn_malloc);
		struct heap_block b;

		now += below(50) ? below(3000) : 1ULL << below(29);
		told[i].time_ns = now;
		told[i].row = i < NR_STACKS ? (u32)i : below(NR_STACKS);
		told[i].did = (struct slice_counts){ .allocs = 1 };
		if (i >= NR_STACKS && heap_find(h, addr, &b)) {
			ev = event(EVENT_FREE, fn_free);
			told[i].row = b.row;
			told[i].did = (struct slice_counts){ .frees = 1, .live_bytes = -(s64)b.size };
		} else {
			ev.size = below(100) ? below(1000) : below(1000000);
			ev.stack = S + told[i].row;
			told[i].did.alloc_bytes = ev.size;
			told[i].did.live_bytes = (s64)ev.size;
			addr = i < NR_STACKS ? (NR_BLOCKS + 1 + i) * 16 : addr;
		}
		ev.time_ns = now;
		ev.addr = addr;
		assert_int_equal(heap_event(h, &ev), 0);
	}
}

static struct slice_counts wanted[NR_STACKS];

static void add(struct slice_counts *to, const struct slice_counts *more, int sign)
{
	to->allocs += (u64)sign * more->allocs;
	to->frees += (u64)sign * more->frees;
	to->alloc_bytes += (u64)sign * more->alloc_bytes;
	to->live_bytes += sign * more->live_bytes;
}

static int check_row(void *ctx, u32 row, const struct slice_counts *counts)
{
	s64 *last = ctx;

	assert_true((s64)row > *last && row < NR_STACKS);
	*last = row;
	assert_true(counts->allocs || counts->frees);
	add(&wanted[row], counts, -1);
	return 0;
}

/* Each slice has what was told between its beginning and that of the next one. Returns how many slices there are. */
static u32 check_slices(const struct heap *h, size_t from, size_t to)
{
	static const struct slice_counts none[NR_STACKS];
	u64 begin_ns, end_ns;
	size_t next = from;
	u32 nr = 0;

	for (; heap_slice(h, nr, &begin_ns); nr++) {
		s64 last = -1;

		if (!heap_slice(h, nr + 1, &end_ns))
			end_ns = UINT64_MAX;
		assert_true(begin_ns < end_ns);
		assert_true(begin_ns <= told[next].time_ns);
		for (; next < to && told[next].time_ns < end_ns; next++)
			add(&wanted[told[next].row], &told[next].did, 1);
		assert_int_equal(heap_slice_visit(h, nr, check_row, &last), 0);
		assert_memory_equal(wanted, none, sizeof(none));
	}
	assert_int_equal(next, to);
	return nr;
}

static void slices_have_all_events(void **state)
{
	static const size_t ends[] = { NR_STACKS, 1000, 3000, 10000, 33333, NR_EVENTS };
	struct heap *h = new_heap();
	size_t done = 0;
	u32 nr = 0;

	(void)state;
	assert_int_equal(heap_keep_slices(h), 0);
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
		enter_random(h, done, ends[i]);
		done = ends[i];
		nr = check_slices(h, 0, done);
	}
	assert_in_range(nr, SLICES_MAX / 4, SLICES_MAX + 1);
	heap_free(h);
}

static void a_child_goes_on_with_slices(void **state)
{
	struct heap *h = new_heap();
	struct heap *child;

	(void)state;
	assert_int_equal(heap_keep_slices(h), 0);
	enter_random(h, 0, 20000);
	assert_int_equal(heap_clone(&child, h), 0);
	heap_free(h);
	check_slices(child, 0, 20000);
	enter_random(child, 20000, 40000);
	check_slices(child, 0, 40000);
	heap_free(child);
}

/* A limit that leaves little room makes slices longer; the numbers stay right. */
static void little_memory_makes_slices_longer(void **state)
{
	struct heap *h = new_heap();
	u32 nr;

	(void)state;
	assert_int_equal(heap_keep_slices(h), 0);
	enter_random(h, 0, 2000);
	heap_set_limit(h, heap_memory(h) + 4000);
	enter_random(h, 2000, 50000);
	nr = check_slices(h, 0, 50000);
	assert_in_range(nr, 1, SLICES_MAX / 2);
	assert_int_equal(heap_lost(h), 0);
	heap_free(h);
}

static int sum_row(void *ctx, u32 row, const struct slice_counts *counts)
{
	struct slice_counts *sums = ctx;

	add(&sums[row], counts, 1);
	return 0;
}

static void a_span_has_slices_of_its_own(void **state)
{
	static struct slice_counts sums[NR_STACKS];
	struct heap *h = new_heap();
	u64 begin_ns;

	(void)state;
	assert_int_equal(heap_keep_slices(h), 0);
	enter_random(h, 0, 5000);
	heap_span_begin(h);
	enter_random(h, 5000, 9000);
	heap_span_end(h);
	enter_random(h, 9000, 15000);
	for (u32 i = 0; heap_slice(h, i, &begin_ns); i++) {
		assert_true(begin_ns >= told[5000].time_ns);
		assert_int_equal(heap_slice_visit(h, i, sum_row, sums), 0);
	}
	for (u32 i = 0; i < heap_row_count(h); i++) {
		struct heap_row row = heap_row_get(h, i);

		assert_int_equal(sums[i].allocs, row.allocs);
		assert_int_equal(sums[i].frees, row.frees);
		assert_int_equal(sums[i].alloc_bytes, row.alloc_bytes);
		assert_int_equal(sums[i].live_bytes, row.live_bytes);
	}
	heap_free(h);
}

static void a_heap_without_slices_has_none(void **state)
{
	struct heap *h = new_heap();
	u64 begin_ns;

	(void)state;
	enter_random(h, 0, 1000);
	assert_false(heap_slice(h, 0, &begin_ns));
	assert_int_equal(heap_slice_visit(h, 0, sum_row, NULL), 0);
	heap_free(h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(slices_have_all_events),
		cmocka_unit_test(a_child_goes_on_with_slices),
		cmocka_unit_test(little_memory_makes_slices_longer),
		cmocka_unit_test(a_span_has_slices_of_its_own),
		cmocka_unit_test(a_heap_without_slices_has_none),
	};

	return cmocka_run_group_tests(tests, find_functions, NULL);
}

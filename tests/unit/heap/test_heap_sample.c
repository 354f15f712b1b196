/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The intervals of a sampled heap hold the truth in 95 of 100 runs, for several kinds of blocks. */
#include <math.h>

#include "tests/unit/books.h"
#include "user/heap/heap_sample.h"

enum { RUNS = 2000, DISTANCE = 4096, MAX_BLOCKS = 1200 };

static u64 random_state = 88172645463325252ULL;

static double fraction(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (double)(random_state >> 11) / 9007199254740992.0;
}

/* Sizes of blocks: @nr of them, all @least, or between it and @most by a power law, so that few are large. */
struct kind_of_blocks {
	const char *name;
	u32 nr;
	double least, most;
};

static const struct kind_of_blocks kinds[] = {
	{ "small, few samples", 300, 48, 48 },	    { "small, many samples", 1200, 400, 400 },
	{ "of the distance", 200, 4096, 4096 },	    { "above the distance", 200, 12000, 12000 },
	{ "all sizes", 600, 16, 200000 },	    { "two or three samples", 20, 500, 500 },
	{ "small to the distance", 400, 32, 4096 },
};

struct truth {
	u64 alloc_bytes, live_bytes;
};

/* How many runs have an interval that holds the truth. */
struct held {
	u32 alloc, live, freed;
};

static u64 live_part(const struct heap_row *row)
{
	return row->live_bytes;
}

static u64 alloc_part(const struct heap_row *row)
{
	return row->alloc_bytes;
}

static u64 freed_part(const struct heap_row *row)
{
	return row->alloc_bytes - row->live_bytes;
}

static bool holds(struct heap_interval i, u64 is)
{
	return i.low <= is && is <= i.high;
}

/* Each block is sampled by its chance; each second one is freed. */
static void sample_run(const struct kind_of_blocks *k, struct held *held)
{
	struct heap *h = new_heap();
	struct truth is = { 0 };

	heap_set_sample(h, DISTANCE);
	for (u32 n = 0; n < k->nr; n++) {
		u64 size = (u64)(k->least * pow(k->most / k->least, n / (double)k->nr));
		u64 addr = 0x1000 + n * 0x100000ULL;

		is.alloc_bytes += size;
		is.live_bytes += n % 2 ? size : 0;
		if (fraction() > 1 - exp(-((double)size + 1) / DISTANCE))
			continue;
		do_alloc(h, fn_malloc, addr, size);
		if (n % 2 == 0)
			do_free(h, addr);
	}
	held->alloc += holds(heap_all_interval(h, alloc_part), is.alloc_bytes);
	held->live += holds(heap_all_interval(h, live_part), is.live_bytes);
	held->freed += holds(heap_all_interval(h, freed_part), is.alloc_bytes - is.live_bytes);
	heap_free(h);
}

static void check_held(const char *name, const char *what, u32 held)
{
	/* 2,000 runs tell 95 from 93.5 of 100. */
	if (held < RUNS * 935 / 1000)
		fail_msg("%s: %s: %u of %d runs", name, what, held, RUNS);
}

static void test_intervals_hold(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		struct held held = { 0 };

		for (int run = 0; run < RUNS; run++)
			sample_run(&kinds[i], &held);
		check_held(kinds[i].name, "allocated", held.alloc);
		check_held(kinds[i].name, "live", held.live);
		check_held(kinds[i].name, "freed", held.freed);
	}
}

/* An interval is no wider than it must be: of @nr samples, some 2 / sqrt(@nr) to each side. */
static void test_intervals_are_narrow(void **state)
{
	struct heap_interval i = heap_interval_of(1e9, 1e7 * 1e9, 1e7);

	(void)state;
	assert_in_range(i.low, 800000000, 830000000);
	assert_in_range(i.high, 1200000000, 1240000000);
	i = heap_interval_of(0, 0, 1e6);
	assert_int_equal(i.low, 0);
	assert_in_range(i.high, 3500000, 3800000);
}

/* A stream keeps the distance and what chance has decided; times in it are rounded. */
static void test_recorded_is_the_same(void **state)
{
	struct heap *live = new_heap(), *later = new_heap();
	struct heap_totals is, was;

	(void)state;
	heap_set_sample(live, DISTANCE);
	heap_set_sample(later, DISTANCE);
	for (u64 n = 0; n < 400; n++) {
		struct heap_event ev = { .h = { .kind = EVENT_ALLOC, .fn = fn_malloc, .pid = 1, .tid = 1 },
					 .time_ns = 1000000 + n * 37,
					 .addr = 0x1000 + n * 0x10000,
					 .size = 16 + n * 13 };
		struct heap_event rec = ev;

		ev.h.distance = n % 3 ? 0 : 10 + n % 8;
		rec.h.distance = heap_sample_drawn(live, &ev);
		rec.time_ns &= ~1023ULL;
		assert_int_equal(heap_event(live, &ev), 0);
		assert_int_equal(heap_event(later, &rec), 0);
	}
	was = heap_totals(live);
	is = heap_totals(later);
	assert_int_equal(is.allocs, was.allocs);
	assert_int_equal(is.alloc_bytes, was.alloc_bytes);
	assert_int_equal(is.live_blocks, was.live_blocks);
	assert_true(heap_row_get(later, 0).spread == heap_row_get(live, 0).spread);
	heap_free(live);
	heap_free(later);
}

static int carry_block(void *ctx, const struct heap_block *block)
{
	struct heap **heaps = ctx;
	const struct heap_event ev = { .h = { .kind = EVENT_ALLOC,
					      .fn = fn_malloc,
					      .pid = 1,
					      .tid = 1,
					      .distance = heap_block_drawn(heaps[0], block) },
				       .time_ns = 5000000,
				       .addr = block->addr,
				       .size = block->size };

	return heap_event(heaps[1], &ev);
}

/* A part of a recording begins with the live blocks of the part before. */
static void test_carried_is_the_same(void **state)
{
	struct heap *heaps[] = { new_heap(), new_heap() };

	(void)state;
	heap_set_sample(heaps[0], DISTANCE);
	heap_set_sample(heaps[1], DISTANCE);
	for (u64 n = 0; n < 300; n++)
		do_alloc(heaps[0], fn_malloc, 0x1000 + n * 0x10000, 100 + n * 7);
	assert_int_equal(heap_for_each_block(heaps[0], carry_block, heaps), 0);
	assert_int_equal(heap_totals(heaps[1]).live_blocks, heap_totals(heaps[0]).live_blocks);
	assert_int_equal(heap_totals(heaps[1]).live_bytes, heap_totals(heaps[0]).live_bytes);
	heap_free(heaps[0]);
	heap_free(heaps[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_intervals_hold),
		cmocka_unit_test(test_intervals_are_narrow),
		cmocka_unit_test(test_recorded_is_the_same),
		cmocka_unit_test(test_carried_is_the_same),
	};

	return cmocka_run_group_tests(tests, find_functions, NULL);
}

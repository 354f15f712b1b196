/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The distance of samples follows a process, and blocks keep what they stand for. */
#include <math.h>

#include "call/distance.h"
#include "tests/unit/books.h"
#include "user/heap/heap_sample.h"
#include "user/source/sample_pace.h"

static const u64 second_ns = 1000000000;

/* A process whose samples are @rate a second at the distance of 1 MiB: the distance after @nr_s seconds. */
static u64 pace_after(struct sample_pace *p, double rate, u32 nr_s, u64 *now_ns)
{
	u64 distance = 1ULL << p->log;

	for (u32 i = 0; i < nr_s; i++) {
		*now_ns += second_ns;
		distance = sample_pace_next(p, (u64)(rate * 1048576 / (double)distance), *now_ns);
	}
	return distance;
}

static void test_follows(void **state)
{
	struct sample_pace p = { .is_on = true, .log = SAMPLE_FIRST_LOG };
	u64 now_ns = second_ns, distance;

	(void)state;
	assert_int_equal(sample_pace_next(&p, 0, now_ns), 1 << SAMPLE_FIRST_LOG);
	for (double rate = 0.5; rate < 50000; rate *= 3) {
		distance = pace_after(&p, rate, 20, &now_ns);
		if (distance > 1 << SAMPLE_LEAST_LOG && distance < 1 << SAMPLE_MOST_LOG)
			assert_in_range((u64)(rate * 1048576 / (double)distance), 99, 301);
	}
	assert_int_equal(pace_after(&p, 1e9, 3, &now_ns), 1 << SAMPLE_MOST_LOG);
	assert_int_equal(pace_after(&p, 0, 20, &now_ns), 1 << SAMPLE_LEAST_LOG);
	/* A burst is seen before its second is over. */
	assert_true(sample_pace_next(&p, 10000, now_ns + 1) > 1 << SAMPLE_LEAST_LOG);
}

/* 200 processes together have as many records as eight. */
static void test_crowd(void **state)
{
	struct sample_pace p = { .is_on = true, .log = SAMPLE_FIRST_LOG, .crowd = 200 };
	u64 now_ns = second_ns, distance;

	(void)state;
	sample_pace_next(&p, 0, now_ns);
	distance = pace_after(&p, 100, 20, &now_ns);
	assert_in_range(100 * 1048576 / distance, 3, 13);
	p.crowd = 8;
	distance = pace_after(&p, 100, 20, &now_ns);
	assert_in_range(100 * 1048576 / distance, 99, 301);
}

/* A limit of cost halves what all may have, and each process has its share, whatever it asks for. */
static void test_limit_of_all(void **state)
{
	struct sample_pace calm = { .is_on = true, .log = SAMPLE_FIRST_LOG, .crowd = 100 }, dear = calm;
	u64 calm_ns = second_ns, dear_ns = second_ns, distance;
	u32 sum = SAMPLE_SUM, before;

	(void)state;
	sample_pace_next(&calm, 0, calm_ns);
	sample_pace_next(&dear, 0, dear_ns);
	for (int i = 0; i < 4; i++) {
		calm.sum = dear.sum = sum = sample_pace_sum(sum, 101, 100);
		assert_int_equal(sum, SAMPLE_SUM >> (i + 1));
		distance = pace_after(&dear, 40, 20, &dear_ns);
		assert_true(40 * 1048576ULL / distance <= sum * 2 / 100 + 1);
	}
	assert_true(pace_after(&calm, 1, 20, &calm_ns) < distance / 4);
	/* A sum that costs half of the limit stays, and so does the largest. */
	assert_int_equal(sample_pace_sum(sum, 50, 100), sum);
	assert_int_equal(sample_pace_sum(sum, 49, 100), 2 * sum);
	assert_int_equal(sample_pace_sum(SAMPLE_SUM, 0, 100), SAMPLE_SUM);
	do
		before = sum;
	while ((sum = sample_pace_sum(sum, 101, 100)) < before);
	assert_int_equal(sum, SAMPLE_LEAST_SUM);
}

static void test_many_live_blocks(void **state)
{
	struct sample_pace p = { .is_on = true, .log = SAMPLE_LEAST_LOG };
	struct heap_event ev = event(EVENT_ALLOC, fn_malloc);
	u64 now_ns = second_ns, last = 0;

	(void)state;
	ev.addr = 16;
	sample_pace_next(&p, 0, now_ns);
	for (u32 i = 0; i < 100000; i++) {
		sample_pace_count(&p, &ev);
		if (i % 100 == 0)
			last = sample_pace_next(&p, 0, now_ns += second_ns);
	}
	assert_int_equal(last, 1 << SAMPLE_MOST_LOG);
	ev.h.kind = EVENT_FREE;
	for (u32 i = 0; i < 100000; i++)
		sample_pace_count(&p, &ev);
	assert_int_equal(pace_after(&p, 0, 20, &now_ns), 1 << SAMPLE_LEAST_LOG);
}

/* While the distance changes, sums stay right: each block stands for others of the distance that it was drawn from. */
static void test_no_bias(void **state)
{
	struct sample_pace p = { .is_on = true, .log = SAMPLE_FIRST_LOG };
	u64 random = 1, now_ns = second_ns, mean = 1 << SAMPLE_FIRST_LOG, drawn = mean, nr = 0, bytes = 0;
	s64 left = (s64)sample_distance(sample_random(&random), mean);
	struct heap_event ev = event(EVENT_ALLOC, fn_malloc);
	struct heap *h = new_heap();
	double variance = 0;
	struct heap_totals t;

	(void)state;
	heap_set_sample(h, mean);
	for (u32 i = 0; i < 3000000; i++) {
		/* Calm and busy times, small and large blocks. */
		bool is_busy = i / 300000 % 2;
		u64 size = sample_random(&random) % (i % 50 ? 500 : 100000);
		double chance = -expm1(-((double)size + 1) / (double)drawn);

		bytes += size;
		variance += (double)size * (double)size * (1 - chance) / chance;
		left -= (s64)size + 1;
		if (left < 0) {
			ev.addr = 4096 + 16ULL * i;
			ev.size = size;
			ev.time_ns += 1000;
			ev.h.distance = (u32)__builtin_ctzll(drawn);
			assert_int_equal(heap_event(h, &ev), 0);
			nr++;
			drawn = mean;
			left = (s64)sample_distance(sample_random(&random), drawn);
		}
		if (i % (is_busy ? 30000 : 300) == 0) {
			mean = sample_pace_next(&p, nr, now_ns += second_ns);
			nr = 0;
		}
	}
	t = heap_totals(h);
	print_message("%.4f of the bytes\n", (double)t.alloc_bytes / (double)bytes);
	assert_true(fabs((double)t.alloc_bytes - (double)bytes) < 6 * sqrt(variance));
	assert_true(heap_sample_bytes(h) != 1 << SAMPLE_FIRST_LOG);
	heap_free(h);
}

/* A target may write anything in place of a distance. */
static void test_wrong_distance(void **state)
{
	struct heap_event ev = event(EVENT_ALLOC, fn_malloc);
	struct heap *h = new_heap();
	struct heap_block b;

	(void)state;
	heap_set_sample(h, 4096);
	ev.addr = 0x10;
	ev.size = UINT64_MAX;
	ev.h.distance = UINT32_MAX;
	assert_int_equal(heap_event(h, &ev), 0);
	assert_int_equal(heap_sample_bytes(h), 4096);
	assert_true(heap_find(h, 0x10, &b));
	assert_int_equal(heap_totals(h).live_bytes, b.size);
	ev.h.kind = EVENT_FREE;
	assert_int_equal(heap_event(h, &ev), 0);
	assert_int_equal(heap_totals(h).live_bytes, 0);
	heap_free(h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_follows),	     cmocka_unit_test(test_crowd),
		cmocka_unit_test(test_limit_of_all), cmocka_unit_test(test_many_live_blocks),
		cmocka_unit_test(test_no_bias),	     cmocka_unit_test(test_wrong_distance),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

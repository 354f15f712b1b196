/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lines through needs of a process: leaks of each speed are found, ups and downs are none, and errors are honest. */
#include "user/system/growth.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { SECOND_DS = 10, KIB = 1024, MIB = 1024 * 1024 };

/* One point a second. */
static void feed(struct growth *g, u32 from_s, u32 seconds, u64 (*bytes)(u32 s))
{
	for (u32 s = from_s; s < from_s + seconds; s++)
		growth_add(g, s * SECOND_DS, bytes(s));
}

static u64 level(u32 s)
{
	(void)s;
	return 50 * MIB;
}

/* 1 MiB a minute, in pages. */
static u64 leak(u32 s)
{
	return 50 * (u64)MIB + (u64)s * MIB / 60 / 4096 * 4096;
}

/* A leak of that rate, in steps of an allocator. */
static u64 steps(u32 s)
{
	return 50 * (u64)MIB + (u64)s * MIB / 60 / (132 * KIB) * (132 * KIB);
}

/* A heap that fills for a quarter of a minute and is emptied. */
static u64 saw(u32 s)
{
	return 50 * (u64)MIB + s % 15 * 2 * MIB;
}

static u64 noise(u32 s)
{
	return 50 * (u64)MIB + (s * 7919U + s * s * 104729U) % 4001 * KIB;
}

/* 10 MiB an hour: less than a step a minute. */
static u64 slow(u32 s)
{
	return 50 * (u64)MIB + (u64)s * 10 * MIB / 3600 / 4096 * 4096;
}

static void no_points(void **state)
{
	struct growth g = { 0 };
	struct growth_line line = growth_estimate(&g);

	(void)state;
	assert_false(line.is_sure);
	assert_int_equal(line.nr, 0);
	assert_int_equal(growth_since(&g), 0);
	assert_false(growth_is_possible(&g));
	growth_add(&g, 0, MIB);
	assert_false(growth_estimate(&g).is_sure);
}

static void leaks_are_found(void **state)
{
	static u64 (*const leaks[])(u32 s) = { leak, steps };
	const double rate = MIB / 60.0;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(leaks); i++) {
		struct growth g = { 0 };
		struct growth_line line;

		feed(&g, 0, 90, leaks[i]);
		line = growth_estimate(&g);
		assert_true(growth_is_possible(&g));
		assert_true(line.is_sure);
		/* The truth is where the error says. */
		assert_true(fabs(line.bytes_per_s - rate) <= 3 * line.error_per_s + rate / 1000);
		assert_true(line.error_per_s < rate / 5);
		assert_int_equal(line.nr, GROWTH_POINTS);
		assert_int_equal(line.time_ns, (GROWTH_POINTS - 1) * 1000000000ULL);
	}
}

static void small_rises_are_none(void **state)
{
	struct growth g = { 0 };

	(void)state;
	/* Ten points: 170 KiB may be one step. */
	feed(&g, 0, 10, leak);
	assert_false(growth_estimate(&g).is_sure);
	feed(&g, 10, 10, leak);
	assert_true(growth_estimate(&g).is_sure);
}

static void ups_and_downs_are_none(void **state)
{
	static u64 (*const others[])(u32 s) = { level, saw, noise };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		struct growth g = { 0 };

		for (u32 s = 0; s < 7200; s++) {
			growth_add(&g, s * SECOND_DS, others[i](s));
			/* The first rise looks like any other. */
			assert_false(s > 30 && growth_estimate(&g).is_sure);
		}
	}
}

static void slow_leaks_need_the_hour(void **state)
{
	struct growth g = { 0 };
	struct growth_line line;

	(void)state;
	feed(&g, 0, 60, slow);
	assert_false(growth_estimate(&g).is_sure);
	feed(&g, 60, 1800, slow);
	line = growth_estimate(&g);
	assert_true(line.is_sure);
	assert_true(fabs(line.bytes_per_s * 3600 - 10.0 * MIB) < MIB);
	assert_true(line.time_ns > 1500 * 1000000000ULL);
}

static void growth_that_is_over(void **state)
{
	struct growth g = { 0 };

	(void)state;
	feed(&g, 0, 900, leak);
	assert_true(growth_estimate(&g).is_sure);
	for (u32 s = 900; s < 1800; s++)
		growth_add(&g, s * SECOND_DS, leak(899));
	assert_false(growth_estimate(&g).is_sure);
}

static void since_the_last_time_so_low(void **state)
{
	struct growth g = { 0 };

	(void)state;
	feed(&g, 0, 1200, level);
	for (u32 s = 1200; s < 1800; s++)
		growth_add(&g, s * SECOND_DS, 50 * (u64)MIB + (s - 1200) * 64 * KIB);
	assert_in_range(growth_since(&g), 1140 * SECOND_DS, 1200 * SECOND_DS);
}

static void large_and_late(void **state)
{
	struct growth g = { 0 };
	u32 month_ds = 31 * 86400 * SECOND_DS;

	(void)state;
	/* A month after the start, beyond 4 TiB: no overflow. */
	for (u32 s = 0; s < 60; s++)
		growth_add(&g, month_ds + s * SECOND_DS, (u64)1 << 50);
	assert_false(growth_estimate(&g).is_sure);
	assert_int_equal(growth_estimate(&g).bytes_per_s, 0);
	for (u32 s = 60; s < 120; s++)
		growth_add(&g, month_ds + s * SECOND_DS, ((u64)1 << 41) + s * (u64)MIB);
	assert_true(growth_estimate(&g).is_sure);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_points),
		cmocka_unit_test(leaks_are_found),
		cmocka_unit_test(small_rises_are_none),
		cmocka_unit_test(ups_and_downs_are_none),
		cmocka_unit_test(slow_leaks_need_the_hour),
		cmocka_unit_test(growth_that_is_over),
		cmocka_unit_test(since_the_last_time_so_low),
		cmocka_unit_test(large_and_late),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

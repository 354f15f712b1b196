/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The plan of a scan: its arithmetic for heaps that no test can have, and its truth for one that a test can. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "user/lib/types.h"
#include "user/scan/scan_plan.h"

/* 50 GiB in 10^8 blocks, on 2 CPUs: below 3 GiB of memory and a minute and a half. */
static void large(void **state)
{
	const u64 gib = 1ULL << 30;
	struct scan_plan p = scan_plan_of(100000000, 50 * gib, 2);

	(void)state;
	assert_int_equal(p.memory, 100000000ULL * 26 + (24 << 20));
	assert_true(p.memory < 3 * gib);
	assert_int_equal(p.read_ns, 50 * gib / 1024 * 900 / 2);
	assert_int_equal(p.time_ns, p.read_ns + 100000000ULL * 180);
	assert_true(p.time_ns < 90 * 1000000000ULL);
	/* Twice the threads read in half the time; blocks are sorted and judged by one. */
	assert_int_equal(scan_plan_of(100000000, 50 * gib, 4).read_ns, p.read_ns / 2);
	assert_int_equal(scan_plan_of(100000000, 50 * gib, 4).memory, p.memory);
}

/* Numbers from a broken heap do not wrap around to a small plan. */
static void saturates(void **state)
{
	struct scan_plan p = scan_plan_of(UINT64_MAX / 2, UINT64_MAX, 1);

	(void)state;
	assert_true(p.memory == UINT64_MAX);
	assert_true(p.time_ns == UINT64_MAX);
	assert_true(scan_plan_of(1, 1 << 20, 0).read_ns > 0);
}

static void limit(void **state)
{
	const u64 needs = scan_plan_of(50000000, 0, 1).memory;

	(void)state;
	assert_int_equal(scan_plan_check(getpid(), 50000000, 1, 0, true), 0);
	assert_int_equal(scan_plan_check(getpid(), 50000000, 1, needs, true), 0);
	assert_int_equal(scan_plan_check(getpid(), 50000000, 1, needs - 1, true), -EDQUOT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(large),
		cmocka_unit_test(saturates),
		cmocka_unit_test(limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

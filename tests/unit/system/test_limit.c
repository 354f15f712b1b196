/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Limits that a growing process meets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "user/system/limit.h"

#define GIB (1ULL << 30)

/* Free swap is room beside what is available, also where there is more of it than memory in use. */
static void machine_with_swap(void **state)
{
	struct limit l = { LIMIT_NONE };

	(void)state;
	limit_take_machine(&l, 8 * GIB, 7 * GIB, 4 * GIB);
	assert_int_equal(l.kind, LIMIT_MACHINE);
	assert_int_equal(l.left, 11 * GIB);
	assert_int_equal(l.max, 12 * GIB);
	l = (struct limit){ LIMIT_NONE };
	limit_take_machine(&l, 8 * GIB, 1 * GIB, 0);
	assert_int_equal(l.left, 1 * GIB);
}

/* A nearer limit stays. */
static void nearest_counts(void **state)
{
	struct limit l = { LIMIT_CGROUP, GIB / 2, GIB };

	(void)state;
	limit_take_machine(&l, 8 * GIB, 7 * GIB, 0);
	assert_int_equal(l.kind, LIMIT_CGROUP);
	assert_int_equal(l.left, GIB / 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(machine_with_swap),
					    cmocka_unit_test(nearest_counts) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The price of tracing counts each trap, of which a call may have several. */
#include "user/system/price.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static const struct price_of_call child = {
	.trap_ns = 600, .program_ns = 200, .one_trap_ns = 400, .steady_ns = 100
};

/* One new and one delete of C++: five traps, where malloc and free have three. */
static void each_trap_counts(void **state)
{
	const struct probe_runs runs = { .time_ns = 500, .nr = 5, .steady_ns = 100, .nr_steady = 1 };
	const struct probe_runs no_steady = { .time_ns = 500, .nr = 5 };

	(void)state;
	assert_int_equal(price_of_runs(&child, &runs), 500 + 5 * 400);
	assert_int_equal(price_of_runs(&child, &no_steady), 500 + 5 * 400);
}

/* The programs take twice as long as in the child: so does half of each trap. A faster target has no cheaper traps. */
static void a_busy_machine_makes_traps_dearer(void **state)
{
	struct probe_runs runs = { .time_ns = 500, .nr = 5, .steady_ns = 400, .nr_steady = 2 };

	(void)state;
	assert_int_equal(price_of_runs(&child, &runs), 500 + 5 * 600);
	runs.steady_ns = 100;
	assert_int_equal(price_of_runs(&child, &runs), 500 + 5 * 400);
}

static void nothing_was_measured(void **state)
{
	const struct price_of_call unknown = { 0 };
	const struct probe_runs none = { 0 }, runs = { .time_ns = 500, .nr = 5 };

	(void)state;
	assert_int_equal(price_of_runs(&child, &none), 0);
	assert_int_equal(price_of_runs(&unknown, &runs), 500);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_trap_counts),
		cmocka_unit_test(a_busy_machine_makes_traps_dearer),
		cmocka_unit_test(nothing_was_measured),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

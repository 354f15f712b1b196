/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The price of breakpoints, by the time of a process in the kernel. */
#include "user/session/session_price.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define MS 1000000ULL

static struct process_moment moment(u64 calls, u64 user_ms, u64 system_ms)
{
	return (struct process_moment){ calls, user_ms * MS, system_ms * MS, 1 };
}

static void time_in_the_kernel_beyond_its_own_is_the_price(void **state)
{
	const struct process_moment then = moment(1000, 500, 500), now = moment(101000, 600, 900);

	u32 own;

	(void)state;
	/* Of 400 ms in the kernel, 100 ms are its own: as many as in the program. */
	assert_true(session_price_own(&then, &own) && own == 1000);
	assert_true(session_price(&then, &now, 1000) == 300 * MS);
	assert_true(session_price(&then, &now, 0) == 400 * MS);
}

static void a_call_has_a_least_and_a_highest_price(void **state)
{
	const struct process_moment then = moment(0, 500, 0), none = moment(100000, 600, 0),
				    others = moment(10, 600, 900), all = moment(1000000, 600, 0);

	(void)state;
	/* The ticks of the kernel have missed it. */
	assert_true(session_price(&then, &none, 0) == 50 * MS);
	/* Ten calls have not taken 900 ms. */
	assert_true(session_price(&then, &others, 0) == 1 * MS);
	/* Nothing takes more than all of the time. */
	assert_true(session_price(&then, &all, 0) == 100 * MS);
}

static void of_little_time_nothing_is_known(void **state)
{
	const struct process_moment young = moment(0, 0, 40), only_kernel = moment(0, 0, 4000);

	u32 own;

	(void)state;
	assert_true(!session_price_own(&young, &own) && own == 500);
	assert_true(session_price_own(&only_kernel, &own) && own == 100000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(time_in_the_kernel_beyond_its_own_is_the_price),
		cmocka_unit_test(a_call_has_a_least_and_a_highest_price),
		cmocka_unit_test(of_little_time_nothing_is_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of signals, and numbers of names. */
#include "user/lib/signal_name.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void test_names(void **state)
{
	(void)state;
	assert_string_equal(signal_name(SIGKILL), "KILL");
	assert_string_equal(signal_name(SIGSEGV), "SEGV");
	assert_null(signal_name(0));
	assert_null(signal_name(64));
}

static void test_numbers(void **state)
{
	(void)state;
	assert_int_equal(signal_number("TERM"), SIGTERM);
	assert_int_equal(signal_number("SIGTERM"), SIGTERM);
	assert_int_equal(signal_number("STOP"), SIGSTOP);
	assert_int_equal(signal_number(""), 0);
	assert_int_equal(signal_number("SIG"), 0);
	assert_int_equal(signal_number("yes"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_names), cmocka_unit_test(test_numbers) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}

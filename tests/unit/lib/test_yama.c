/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Words on each setting of Yama: does it forbid to trace, and whom? */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "user/lib/yama.h"

/* (E2) */
static void each_setting(void **state)
{
	(void)state;
	for (int scope = -1; scope < YAMA_NO_ATTACH; scope++)
		assert_null(yama_reason_for(scope, true));
	assert_null(yama_reason_for(-1, false));
	assert_null(yama_reason_for(0, false));
	assert_non_null(strstr(yama_reason_for(1, false), "ptrace_scope is 1"));
	assert_non_null(strstr(yama_reason_for(2, false), "ptrace_scope is 2"));
	assert_non_null(strstr(yama_reason_for(3, false), "ptrace_scope is 3"));
	assert_non_null(strstr(yama_reason_for(3, true), "ptrace_scope is 3"));
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(each_setting) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}

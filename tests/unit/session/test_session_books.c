/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Whether a census can judge older blocks: memory is read for that only where a verdict names one. */
#include "user/session/session_books.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

static void only_a_verdict_without_leaks_asks_for_books(void **state)
{
	struct leaks leaks = { .has_verdict = true };
	struct target target = { .pid = getpid() };
	struct process p = { .target = &target, .leaks = &leaks };

	(void)state;
	leaks.result.sums.of[SCAN_DEFINITE].blocks = 1;
	assert_false(session_lacks_books(&p));
	assert_false(p.has_asked_for_books);
	leaks.result.sums.of[SCAN_DEFINITE].blocks = 0;
	leaks.has_verdict = false;
	assert_false(session_lacks_books(&p));
	assert_false(p.has_asked_for_books);
	leaks.has_verdict = true;
	snprintf(leaks.books.allocator, sizeof(leaks.books.allocator), "glibc");
	assert_false(session_lacks_books(&p));
	assert_false(p.has_asked_for_books);
	leaks.books.allocator[0] = '\0';
	(void)session_lacks_books(&p);
	assert_true(p.has_asked_for_books);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_a_verdict_without_leaks_asks_for_books),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

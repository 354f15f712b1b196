/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Recursion on stacks of letters, each a frame. */
#include "user/report/frames.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static bool is_same_letter(const void *ctx, size_t a, size_t b)
{
	const char *text = ctx;

	return text[a] == text[b];
}

static void check(const char *text, u32 nr, u32 times)
{
	struct turns t = turns_find(strlen(text), is_same_letter, text);

	assert_int_equal(t.nr, nr);
	assert_int_equal(t.times, times);
}

static void test_none(void **state)
{
	(void)state;
	check("", 1, 1);
	check("a", 1, 1);
	check("aa", 1, 1);
	check("aab", 1, 1);
	check("abab", 1, 1);
	check("abcdefgh", 1, 1);
	check("baaa", 1, 1);
}

static void test_one_function(void **state)
{
	(void)state;
	check("aaa", 1, 3);
	check("aaaab", 1, 4);
}

static void test_several_functions(void **state)
{
	(void)state;
	check("ababab", 2, 3);
	check("abababa", 2, 3);
	check("abababab", 2, 4);
	check("aabaabaabx", 3, 3);
	/* The shortest turn wins, also where a longer one leaves less. */
	check("aaabaaabaaab", 1, 3);
	check("abcdefghijklabcdefghijklabcdefghijkl", 12, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_none), cmocka_unit_test(test_one_function),
					    cmocka_unit_test(test_several_functions) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}

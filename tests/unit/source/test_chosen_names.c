/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of programs as a machine: it chooses what fnmatch() does. The loop below is that of bpf/chosen.bpf.h. */
#include "user/source/chosen_names.h"

#include <errno.h>
#include <fnmatch.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static bool fits(const struct chosen_names *names, const char *comm)
{
	u64 now = names->begins;

	for (int i = 0; i < 15 && comm[i]; i++)
		now = (now & names->steps[(u8)comm[i]]) << 1 | (now & names->stays);
	return now & names->ends;
}

static void chooses_as_fnmatch(void **state)
{
	static const char *const patterns[] = { "sh",	    "s*",   "*sh",    "*a*b*",
						"php-fpm*", "w?rk", "[a-c]x", "[!a]x",
						"[]a]x",    "a\\*", "[ab",    "x[[:digit:]]y*",
						"a[*]b",    "*",    "",	      "\\",
						"**a",	    "?",    "[a]]",   "a[[:x" };
	static const char *const comms[] = { "sh",	   "bash",
					     "s",	   "",
					     "ab",	   "xaxbx",
					     "php-fpm8.2", "work",
					     "wrk",	   "ax",
					     "bx",	   "dx",
					     "]x",	   "a*",
					     "ax*",	   "[ab",
					     "x7y",	   "xyy",
					     "x7yzzz",	   "a*b",
					     "aab",	   "\\",
					     "aa",	   "a]",
					     "a[[:x",	   "123456789012345",
					     "a\xff" };

	(void)state;
	for (size_t i = 0; i < sizeof(patterns) / sizeof(*patterns); i++) {
		const char *const list[] = { patterns[i], NULL };
		struct chosen_names names;

		assert_int_equal(chosen_names_make(&names, list), 0);
		for (size_t k = 0; k < sizeof(comms) / sizeof(*comms); k++)
			if (fits(&names, comms[k]) != !fnmatch(patterns[i], comms[k], 0))
				fail_msg("pattern %s, name %s", patterns[i], comms[k]);
	}
}

static void several_are_apart(void **state)
{
	static const char *const list[] = { "ab", "*c", "d*", "", NULL };
	struct chosen_names names;

	(void)state;
	assert_int_equal(chosen_names_make(&names, list), 0);
	assert_true(fits(&names, "ab") && fits(&names, "c") && fits(&names, "xc") && fits(&names, "d") &&
		    fits(&names, "dx") && fits(&names, ""));
	assert_false(fits(&names, "abx") || fits(&names, "a") || fits(&names, "cx") || fits(&names, "xd") ||
		     fits(&names, "x"));
}

static void too_many_are_refused(void **state)
{
	static const char *const most[] = { "123456789012345", "123456789012345", "123456789012345",
					    "123456789012345", NULL };
	static const char *const list[] = {
		"123456789012345", "123456789012345", "123456789012345", "123456789012345", "", NULL
	};
	struct chosen_names names;

	(void)state;
	assert_int_equal(chosen_names_make(&names, most), 0);
	assert_true(fits(&names, "123456789012345"));
	assert_int_equal(chosen_names_make(&names, list), -E2BIG);
	assert_int_equal(
		chosen_names_make(&names,
				  (const char *const[]){ "[abcdefghijklmnopqrstuvwxyz0123456789]", NULL }),
		-E2BIG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(chooses_as_fnmatch),
		cmocka_unit_test(several_are_apart),
		cmocka_unit_test(too_many_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The agent's own reading of options, beside that of the C library. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <getopt.h>
#include <string.h>

#include "user/lib/types.h"

#define getopt_long small_getopt_long
#define optarg	    small_optarg
#define optind	    small_optind
#define opterr	    small_opterr
#define optopt	    small_optopt
int small_getopt_long(int argc, char *const *argv, const char *shorts, const struct option *longs,
		      int *index);
extern char *small_optarg;
extern int small_optind, small_opterr, small_optopt;
#include "user/agent/small_getopt.c"
#undef getopt_long
#undef optarg
#undef optind
#undef opterr
#undef optopt

static const struct option longs[] = { { "depth", required_argument, NULL, 256 },
				       { "quiet", no_argument, NULL, 257 },
				       { NULL } };

enum { MAX_WORDS = 12 };

static int split(char *line, char **argv)
{
	int argc = 0;

	for (char *word = strtok(line, " "); word; word = strtok(NULL, " "))
		argv[argc++] = word;
	argv[argc] = NULL;
	return argc;
}

static void same(const char *line, const char *shorts)
{
	char line_a[128], line_b[128], *a[MAX_WORDS + 1], *b[MAX_WORDS + 1];
	int argc, found;

	strcpy(line_a, line);
	strcpy(line_b, line);
	argc = split(line_a, a);
	split(line_b, b);
	opterr = 0;
	optind = small_optind = 0;
	do {
		found = getopt_long(argc, a, shorts, longs, NULL);
		assert_int_equal(small_getopt_long(argc, b, shorts, longs, NULL), found);
		if (found == '?' || found == ':') {
			assert_int_equal(small_optopt, optopt);
			return;
		}
		if (found == 256 || found == 'd')
			assert_string_equal(small_optarg, optarg);
	} while (found != -1);
	assert_int_equal(small_optind, optind);
	for (int i = 0; i < argc; i++)
		assert_string_equal(b[i], a[i]);
}

static void test_lines(void **state)
{
	static const char *const lines[] = {
		"run",
		"run a b",
		"run -q a",
		"run a -q b --depth 3 c",
		"run -d 3 a",
		"run -d3 a",
		"run -qd 3 a b",
		"run --depth=3 --quiet x",
		"run -- -q a",
		"run a -- -q b",
		"run a b -q -- c -d",
		"run - -q",
		"run --depth",
		"run -d",
		"run --nothing",
		"run -z a",
		"run --quiet=x",
		"run -qz",
		"run -q -d 5 -q a -d 6 b",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		same(lines[i], ":d:q");
		same(lines[i], "+:d:q");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_lines) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}

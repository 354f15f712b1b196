/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of user/lib/wrap.c: where lines break, and that no text is lost. */
#include "user/lib/wrap.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "user/lib/cleanup.h"

static char *wrapped(const char *text, u32 width, size_t piece)
{
	char *buf = NULL;
	size_t size;
	FILE *out = open_memstream(&buf, &size), *w;

	assert_non_null(out);
	w = wrap_open(out, width);
	assert_non_null(w);
	for (size_t len = strlen(text); len; text += piece, len -= piece) {
		if (piece > len)
			piece = len;
		assert_int_equal(fwrite(text, 1, piece, w), piece);
		assert_int_equal(fflush(w), 0);
	}
	assert_int_equal(fclose(w), 0);
	fclose(out);
	return buf;
}

/* However the text comes. */
static void gives(const char *text, u32 width, const char *expected)
{
	static const size_t pieces[] = { 1, 3, 1000 };

	for (size_t i = 0; i < ARRAY_SIZE(pieces); i++) {
		auto_free char *got = wrapped(text, width, pieces[i]);

		assert_string_equal(got, expected);
	}
}

static void lines_that_fit(void **state)
{
	(void)state;
	gives("", 40, "");
	gives("\n\n", 40, "\n\n");
	gives("no leaks; 12 B live in 1 block, or so ..\n", 40, "no leaks; 12 B live in 1 block, or so ..\n");
	gives("no newline at the end", 40, "no newline at the end");
}

static void breaks_where_a_reader_pauses(void **state)
{
	(void)state;
	gives("no leaks; 12 B live in 1 block, or so ...\n", 40,
	      "no leaks; 12 B live in 1 block,\n    or so ...\n");
	gives("no definite leaks; 1 B possibly leaked, 2\n", 40,
	      "no definite leaks;\n    1 B possibly leaked, 2\n");
	gives("-> 64 B of a_function (0x1000), by a pointer\n", 40,
	      "-> 64 B of a_function (0x1000),\n    by a pointer\n");
	gives("leaks 1 B, 2 places (worst: f at x.c:12345)\n", 40,
	      "leaks 1 B, 2 places\n    (worst: f at x.c:12345)\n");
	gives("        some_function at directory/file.c:12\n", 40,
	      "        some_function\n            at directory/file.c:12\n");
	gives("        some_function at directory/file.c:12 (inlined)\n", 50,
	      "        some_function\n            at directory/file.c:12 (inlined)\n");
	/* No place, though it begins like one. */
	gives("resident: 5 MiB, 4 MiB more: 1 MiB in blocks (from f (x.c:9));\n", 60,
	      "resident: 5 MiB, 4 MiB more: 1 MiB in blocks (from f\n    (x.c:9));\n");
	gives("one two three four five six seven eight nine ten eleven twelve thirteen\n", 40,
	      "one two three four five six seven eight\n    nine ten eleven twelve thirteen\n");
}

/* A terminal may have as few columns as it likes. */
static void few_columns(void **state)
{
	auto_free char *one = NULL;

	(void)state;
	gives("leaks 1,442 B in 10 blocks, 6 places\n", 20, "leaks 1,442 B in 10\n    blocks, 6 places\n");
	/* The room is for the words. */
	gives("        some_function at file.c:12\n", 20, "     some_function\n         at file.c:12\n");
	gives("              in 2 blocks\n", 20, "     in 2 blocks\n");
	gives("              an end\n\n\n", 20, "     an end\n\n\n");
	gives("a b\n", 1, "a\nb\n");
	one = wrapped("    live        12 B of 1 block\n", 1, 1000);
	assert_string_equal(one, "live\n12\nB\nof\n1\nblock\n");
}

static void words_stay_whole(void **state)
{
	(void)state;
	gives("    in /a/very/long/path/that/has/no/blank/at/all.so\n", 40,
	      "    in /a/very/long/path/that/has/no/blank/at/all.so\n");
	gives("/a/very/long/path/that/has/no/blank/at/all.so and more\n", 40,
	      "/a/very/long/path/that/has/no/blank/at/all.so\n    and more\n");
}

static void what_takes_no_column(void **state)
{
	(void)state;
	gives("\033[33mno leaks\033[0m; 12 B live in 1 block, or so ..\n", 40,
	      "\033[33mno leaks\033[0m; 12 B live in 1 block, or so ..\n");
	gives("\xc3\xa4\xc3\xb6\xc3\xbc \xc3\xa4\xc3\xb6\xc3\xbc live in 1 block, or so so so so.\n", 40,
	      "\xc3\xa4\xc3\xb6\xc3\xbc \xc3\xa4\xc3\xb6\xc3\xbc live in 1 block, or so so so so.\n");
	/* A code that never ends, and bytes that are no UTF-8. */
	gives("\033[33", 40, "\033[33");
	gives("\xbf\xbf\xff a\n", 40, "\xbf\xbf\xff a\n");
}

static void long_line_is_not_lost(void **state)
{
	enum { LEN = 100000 };
	auto_free char *text = malloc(LEN + 2), *got;

	(void)state;
	memset(text, 'x', LEN);
	strcpy(text + LEN, "\n");
	got = wrapped(text, 40, 77);
	assert_string_equal(got, text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_that_fit),	cmocka_unit_test(breaks_where_a_reader_pauses),
		cmocka_unit_test(few_columns),		cmocka_unit_test(words_stay_whole),
		cmocka_unit_test(what_takes_no_column), cmocka_unit_test(long_line_is_not_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

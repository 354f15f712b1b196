/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Formats of the command print: how they are parsed, and the values that they write. */
#include "user/console/print_format.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void check(const char *text, int err, u32 count, char letter, u8 size)
{
	struct print_format f;

	assert_int_equal(print_format_parse(&f, text, 8), err);
	if (err)
		return;
	assert_int_equal(f.count, count);
	assert_int_equal(f.letter, letter);
	assert_int_equal(f.size, size);
}

static void test_parsed(void **state)
{
	(void)state;
	check("xw", 0, 1, 'x', 4);
	check("4xg", 0, 4, 'x', 8);
	check("4gx", 0, 4, 'x', 8);
	check("g", 0, 1, 'x', 8);
	check("12", 0, 12, 'x', 4);
	check("d", 0, 1, 'd', 4);
	check("20c", 0, 20, 'c', 1);
	check("s", 0, 1, 's', 1);
	check("2a", 0, 2, 'a', 8);
	check("f", 0, 1, 'f', 8);
	check("2fw", 0, 2, 'f', 4);
	check("", 0, 1, 'x', 4);
}

static void test_refused(void **state)
{
	static const char *const bad[] = { "0x", "0", "xx", "gw", "i", "x4", "-1x", "fb", "sg", " x", "4 x" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		check(bad[i], -EINVAL, 0, 0, 0);
	check("65537xb", -ERANGE, 0, 0, 0);
	check("65536xb", 0, 65536, 'x', 1);
	check("99999999999999999999999x", -ERANGE, 0, 0, 0);
}

/* The @text that the format makes of @bytes. */
static void writes(const char *format, const void *bytes, const char *text)
{
	struct print_format f;
	char *have = NULL;
	size_t len;
	FILE *out = open_memstream(&have, &len);

	assert_int_equal(print_format_parse(&f, format, 8), 0);
	print_format_write(out, &f, bytes);
	fclose(out);
	assert_string_equal(have, text);
	free(have);
}

static void test_written(void **state)
{
	static const s64 minus = -7;
	static const u64 big = 0x8000000000000001;
	static const double half = 2.5;
	static const float quarter = 0.25;

	(void)state;
	writes("xb", &minus, "0xf9");
	writes("xh", &minus, "0xfff9");
	writes("x", &minus, "0xfffffff9");
	writes("xg", &minus, "0xfffffffffffffff9");
	writes("db", &minus, "-7");
	writes("dw", &minus, "-7");
	writes("dg", &minus, "-7");
	writes("zg", "\1\0\0\0\0\0\0", "0x0000000000000001");
	writes("ub", &minus, "249");
	writes("ug", &big, "9223372036854775809");
	writes("o", "\11\0\0", "011");
	writes("o", "\0\0\0", "0");
	writes("tb", "\245", "10100101");
	writes("a", &big, "0x8000000000000001");
	writes("f", &half, "2.5");
	writes("fw", &quarter, "0.25");
	writes("c", "A", "65 'A'");
	writes("c", "\n", "10 '\\n'");
	writes("c", "\r", "13 '\\r'");
	writes("c", "'", "39 '\\''");
	writes("c", "\033", "27 '\\033'");
	writes("c", "\377", "-1 '\\377'");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parsed),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

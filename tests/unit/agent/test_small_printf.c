/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The agent's own printing, beside that of the C library. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "user/lib/types.h"

int small_vfprintf(FILE *restrict file, const char *restrict text, va_list list);
#define vfprintf small_vfprintf
#include "user/agent/small_printf.c"
#undef vfprintf

static void __attribute__((format(printf, 1, 2))) same(const char *fmt, ...)
{
	char expected[512], *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	va_list ap;
	int len, own;

	va_start(ap, fmt);
	len = vsnprintf(expected, sizeof(expected), fmt, ap);
	va_end(ap);
	va_start(ap, fmt);
	own = small_vfprintf(out, fmt, ap);
	va_end(ap);
	fclose(out);
	assert_string_equal(text, expected);
	assert_int_equal(own, len);
	free(text);
}

static void test_integers(void **state)
{
	(void)state;
	same("plain, 100 %%\n");
	same("%d %d %d", 0, -1, INT32_MIN);
	same("%u %lu %llu %zu", UINT32_MAX, UINT64_MAX, 18446744073709551615ULL, (size_t)7);
	same("%ld %lld %zd", INT64_MIN, (long long)INT64_MAX, (ssize_t)-3);
	same("%x %X %lx %08x %04X %016lx", 0xbeefU, 0xBEEFU, 0xfeedfacecafeUL, 7U, 0xAU, 1UL);
	same("[%5d][%-5d][%05d][%05d][%2d]", 42, 42, 42, -42, 12345);
	same("[%*d][%-*d][%*d]", 6, 1, 6, 2, -6, 3);
	same("[%.3d][%8.3d][%.*u]", 7, -7, 4, 9U);
	same("%hhu %hu", 200, 60000);
	same("%p", (void *)0x1234);
}

static void test_texts(void **state)
{
	(void)state;
	same("%s, %c.", "a text", 'x');
	same("[%8s][%-8s][%.3s][%.*s][%8.2s][%s]", "ab", "ab", "abcdef", 2, "abcdef", "abcdef", "");
	same("[%*s][%-*s]", 4, "", 4, "x");
	same("[%3c][%-3c]", 'a', 'b');
}

static void test_doubles(void **state)
{
	static const double values[] = { 0,	0.004, 0.005, 0.125,  0.375, 1.005,  1.25,
					 9.994, 9.995, 12.35, 99.95,  100.5, 0.05,   0.25,
					 0.5,	1.5,   2.675, 1023.9, -1.5,  1e9 / 3 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
		same("%.2f", values[i]);
		same("%.1f|%8.1f|%-8.1f|", values[i], values[i], values[i]);
		same("%.0f", values[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_integers),
		cmocka_unit_test(test_texts),
		cmocka_unit_test(test_doubles),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

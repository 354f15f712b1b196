/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Numbers as digits: each as printf writes it. */
#include "user/lib/digits.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static void check(u64 n)
{
	char text[DIGITS_MAX + 1], want[2 * DIGITS_MAX];

	text[digits_u64(text, n)] = '\0';
	snprintf(want, sizeof(want), "%" PRIu64, n);
	assert_string_equal(text, want);
	text[digits_hex(text, n)] = '\0';
	snprintf(want, sizeof(want), "0x%" PRIx64, n);
	assert_string_equal(text, want);
}

static void as_printf(void **state)
{
	(void)state;
	check(0);
	for (int bit = 0; bit < 64; bit++) {
		check(1ULL << bit);
		check((1ULL << bit) - 1);
		check(UINT64_MAX >> bit);
	}
	for (u64 n = 1; n < UINT64_MAX / 10; n *= 10) {
		check(n);
		check(n - 1);
	}
}

static void bytes_as_printf(void **state)
{
	char text[2 * 256 + 1], want[2 * 256 + 1];
	u8 bytes[256];

	(void)state;
	for (int i = 0; i < 256; i++) {
		bytes[i] = (u8)i;
		snprintf(want + 2 * i, 3, "%02x", i);
	}
	digits_bytes(text, bytes, sizeof(bytes));
	assert_string_equal(text, want);
	digits_bytes(text, bytes, 0);
	assert_string_equal(text, "");
}

static void hex_is_read(void **state)
{
	static const char *const wrong[] = { "", "g", "A", ":", " 1", "-1", "00000000000000001" };
	char text[DIGITS_MAX];
	u64 n;

	(void)state;
	for (int bit = 0; bit < 64; bit++) {
		size_t len = digits_bare_hex(text, UINT64_MAX >> bit);

		text[len] = '\n';
		assert_ptr_equal(digits_get_bare_hex(text, text + sizeof(text), &n), text + len);
		assert_true(n == UINT64_MAX >> bit);
	}
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		assert_null(digits_get_bare_hex(wrong[i], wrong[i] + strlen(wrong[i]), &n));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_printf),
		cmocka_unit_test(bytes_as_printf),
		cmocka_unit_test(hex_is_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

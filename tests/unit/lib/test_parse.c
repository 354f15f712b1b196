/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Numbers as people type them, and as they read them. */
#include "user/lib/parse.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "user/lib/human.h"

enum { UNTOUCHED = 77 };

struct sample {
	const char *text;
	int err;
	u64 value;
};

static void check(const struct sample *samples, size_t nr, int (*parse)(const char *, u64 *))
{
	for (size_t i = 0; i < nr; i++) {
		u64 value = UNTOUCHED;
		int err = parse(samples[i].text, &value);

		if (err != samples[i].err || (!err && value != samples[i].value) ||
		    (err && value != UNTOUCHED))
			fail_msg("\"%s\": %d, %llu", samples[i].text, err, (unsigned long long)value);
	}
}

static void numbers(void **state)
{
	static const struct sample samples[] = {
		{ "0", 0, 0 },
		{ "127", 0, 127 },
		{ "007", 0, 7 },
		{ "18446744073709551615", 0, UINT64_MAX },
		{ "", -EINVAL },
		{ "-1", -EINVAL },
		{ "+1", -EINVAL },
		{ " 1", -EINVAL },
		{ "1 ", -EINVAL },
		{ "1x", -EINVAL },
		{ "0x1", -EINVAL },
		{ "1.5", -EINVAL },
		{ "18446744073709551616", -ERANGE },
		{ "99999999999999999999999", -ERANGE },
	};

	(void)state;
	check(samples, ARRAY_SIZE(samples), parse_u64);
}

static void sizes(void **state)
{
	static const struct sample samples[] = {
		{ "0", 0, 0 },
		{ "4096", 0, 4096 },
		{ "1B", 0, 1 },
		{ "64K", 0, 65536 },
		{ "64k", 0, 65536 },
		{ "64KiB", 0, 65536 },
		{ "1.5K", 0, 1536 },
		{ "2.25M", 0, (2 << 20) + (1 << 18) },
		{ "3G", 0, 3ULL << 30 },
		{ "1T", 0, 1ULL << 40 },
		{ "K", -EINVAL },
		{ "", -EINVAL },
		{ "1.", -EINVAL },
		{ ".5K", -EINVAL },
		{ "1KB", -EINVAL },
		{ "1 K", -EINVAL },
		{ "-1K", -EINVAL },
		{ "1e3", -EINVAL },
		{ "16777216T", -ERANGE },
		{ "18446744073709551615K", -ERANGE },
	};

	(void)state;
	check(samples, ARRAY_SIZE(samples), parse_size);
}

static void durations(void **state)
{
	static const struct sample samples[] = {
		{ "0s", 0, 0 },
		{ "1ns", 0, 1 },
		{ "5us", 0, 5000 },
		{ "500ms", 0, 500000000 },
		{ "10", 0, 10000000000 },
		{ "10s", 0, 10000000000 },
		{ "0.1s", 0, 100000000 },
		{ "1.5h", 0, 5400000000000 },
		{ "5m", 0, 300000000000 },
		{ "7d", 0, 604800000000000 },
		{ "s", -EINVAL },
		{ "10 s", -EINVAL },
		{ "10x", -EINVAL },
		{ "1h30m", 0, 5400000000000 },
		{ "1m30s500ms", 0, 90500000000 },
		{ "30s1m", -EINVAL },
		{ "1m1m", -EINVAL },
		{ "1m30", -EINVAL },
		{ "1m ", -EINVAL },
		{ "1mx", -EINVAL },
		{ "999999999999d", -ERANGE },
	};

	(void)state;
	check(samples, ARRAY_SIZE(samples), parse_duration);
}

static void hex(void **state)
{
	u64 value = 7;

	(void)state;
	assert_int_equal(parse_hex("0x0", &value), 0);
	assert_int_equal(value, 0);
	assert_int_equal(parse_hex("0xfFfF00000000aB12", &value), 0);
	assert_int_equal(value, 0xffff00000000ab12ULL);
	assert_int_equal(parse_hex("0x10000000000000000", &value), -ERANGE);
	assert_int_equal(parse_hex("0x", &value), -EINVAL);
	assert_int_equal(parse_hex("12", &value), -EINVAL);
	assert_int_equal(parse_hex("0x1 ", &value), -EINVAL);
	assert_int_equal(parse_hex("", &value), -EINVAL);
	assert_int_equal(value, 0xffff00000000ab12ULL);
}

static void number(void **state)
{
	static const struct {
		const char *text;
		int err;
		u64 value;
	} cases[] = {
		{ "0", 0, 0 },
		{ "12", 0, 12 },
		{ "18446744073709551615", 0, UINT64_MAX },
		{ "18446744073709551616", -ERANGE, 0 },
		{ "0x7f10", 0, 0x7f10 },
		{ "0XfF", 0, 0xff },
		{ "017", 0, 15 },
		{ "08", -EINVAL, 0 },
		{ "0x", -EINVAL, 0 },
		{ "0xg", -EINVAL, 0 },
		{ "02000000000000000000000", -ERANGE, 0 },
		{ "1a", -EINVAL, 0 },
		{ "-1", -EINVAL, 0 },
		{ "", -EINVAL, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		u64 value = 0;

		assert_int_equal(parse_number(cases[i].text, &value), cases[i].err);
		assert_int_equal(value, cases[i].value);
	}
}

static void nearest(void **state)
{
	static const char *const names[] = { "depth", NULL, "duration", "interval", "output" };

	(void)state;
	assert_string_equal(parse_nearest("dpeth", names, ARRAY_SIZE(names)), "depth");
	assert_string_equal(parse_nearest("outptu", names, ARRAY_SIZE(names)), "output");
	assert_string_equal(parse_nearest("intervax", names, ARRAY_SIZE(names)), "interval");
	assert_null(parse_nearest("xyzzy", names, ARRAY_SIZE(names)));
	assert_null(parse_nearest("this-is-far-longer-than-any-option-is", names, ARRAY_SIZE(names)));
	assert_null(parse_nearest("depth", names, 0));
}

static void human_bytes_round(void **state)
{
	(void)state;
	assert_string_equal(human_bytes(0).text, "0 B");
	assert_string_equal(human_bytes(9999).text, "9,999 B");
	assert_string_equal(human_bytes(10000).text, "9.77 KiB");
	assert_string_equal(human_bytes(1048575).text, "1.00 MiB");
	assert_string_equal(human_bytes(1048576).text, "1.00 MiB");
	assert_string_equal(human_bytes(13002342).text, "12.4 MiB");
	assert_string_equal(human_bytes(UINT64_MAX).text, "16.0 EiB");
	assert_string_equal(human_bytes_exact(9999).text, "9,999 B");
	assert_string_equal(human_bytes_exact(10000).text, "9.77 KiB (10,000 B)");
	assert_string_equal(human_bytes_exact(UINT64_MAX).text, "16.0 EiB (18,446,744,073,709,551,615 B)");
}

static void human_others(void **state)
{
	(void)state;
	assert_string_equal(human_count(0).text, "0");
	assert_string_equal(human_count(999).text, "999");
	assert_string_equal(human_count(1000).text, "1,000");
	assert_string_equal(human_count(UINT64_MAX).text, "18,446,744,073,709,551,615");
	assert_string_equal(human_duration(999).text, "999 ns");
	assert_string_equal(human_duration(350000).text, "350 us");
	assert_string_equal(human_duration(59999999999).text, "59.9 s");
	assert_string_equal(human_duration(242000000000).text, "4m 02s");
	assert_string_equal(human_duration(3 * 86400000000000 + 4 * 3600000000000).text, "3d 04h");
	assert_string_equal(human_percent(0, 0).text, "0 %");
	assert_string_equal(human_percent(1, 3).text, "33.3 %");
	assert_string_equal(human_percent(3, 3).text, "100 %");
	assert_string_equal(human_percent(99999, 100000).text, "99.9 %");
	assert_string_equal(human_percent(1, 100000).text, "<0.1 %");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hex),
		cmocka_unit_test(numbers),
		cmocka_unit_test(sizes),
		cmocka_unit_test(durations),
		cmocka_unit_test(number),
		cmocka_unit_test(nearest),
		cmocka_unit_test(human_bytes_round),
		cmocka_unit_test(human_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

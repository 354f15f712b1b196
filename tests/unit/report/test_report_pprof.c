/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Profiles for pprof: equal reports make equal files, text is escaped, errors are returned. */
#include "tests/unit/report/hostile_write.h"

#include <zlib.h>

#include "user/report/format.h"

enum { MAX_PLAIN = 1 << 22 };

static u8 *plain;
static size_t plain_len;

/* Unpack the last report to plain. */
static void unpack(void)
{
	z_stream z = { .next_in = (u8 *)hostile.text, .avail_in = (uInt)hostile.len };

	free(plain);
	plain = malloc(MAX_PLAIN);
	assert_non_null(plain);
	z.next_out = plain;
	z.avail_out = MAX_PLAIN;
	assert_int_equal(inflateInit2(&z, 15 + 16), Z_OK);
	assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
	assert_int_equal(z.avail_in, 0);
	plain_len = z.total_out;
	inflateEnd(&z);
}

static void write_profile(void)
{
	hostile_write(report_pprof);
	unpack();
}

/* How many times the string @text is in the profile, as a string of its table or as a part of one. */
static size_t count(const char *text)
{
	const u8 *at = plain, *found;
	size_t nr = 0;

	while ((found = memmem(at, plain_len - (size_t)(at - plain), text, strlen(text)))) {
		at = found + 1;
		nr++;
	}
	return nr;
}

/* How many samples of the present stack there are with these values, each less than 128. */
static size_t samples(const u8 values[6])
{
	const u8 head[] = { 2 << 3 | 2, 6, values[0], values[1], values[2], values[3], values[4], values[5] };
	const u8 *at = plain, *found;
	size_t nr = 0;

	while ((found = memmem(at, plain_len - (size_t)(at - plain), head, sizeof(head)))) {
		at = found + 1;
		nr++;
	}
	return nr;
}

#define samples(...) samples((const u8[6]){ __VA_ARGS__ })

static void text_is_escaped_and_once(void **state)
{
	(void)state;
	write_profile();
	assert_int_equal(count("</x>]]>\"'&\\x0a\\x0d%0A::,%\\\\\\x09\\x1b[2J\\xff\\xc0\\x80\\xe2\\x80\\xae"),
			 2);
	assert_int_equal(count("\n\r"), 0);
	assert_int_equal(count("\xff\xc0"), 0);
	assert_int_equal(count("</c>\"\\x0a\\xff"), 1);
	assert_int_equal(count("[no stack taken]"), 1);
	assert_int_equal(count("ab1200ff"), 1);
	assert_int_equal(count("truncated"), 1);
	assert_true(plain_len > HOSTILE_LONG);
}

/* Each verdict has a sample; blocks without one stay in the sample of the calls. */
static void verdicts_split_samples(void **state)
{
	(void)state;
	hostile.process.leaks = &hostile.leaks;
	hostile_judge(2, SCAN_DEFINITE, 1, 7);
	hostile_judge(3, SCAN_REACHABLE, 1, 9);
	write_profile();
	assert_int_equal(samples(0, 0, 1, 7, 1, 7), 1);
	assert_int_equal(samples(1, 7, 0, 0, 0, 0), 1);
	assert_int_equal(samples(0, 0, 1, 9, 0, 0), 1);
	assert_int_equal(samples(1, 9, 0, 0, 0, 0), 1);
	assert_int_equal(samples(1, 11, 1, 11, 0, 0), 1);
}

/* A filter leaves blocks out of what is live, but not out of the verdicts: no value may fall below 0. */
static void a_filter_takes_nothing_twice(void **state)
{
	(void)state;
	hostile.process.leaks = &hostile.leaks;
	hostile_judge(2, SCAN_DEFINITE, 1, 7);
	hostile.report.options.min_size = 8;
	write_profile();
	assert_int_equal(samples(0, 0, 0, 0, 1, 7), 1);
	assert_int_equal(samples(1, 7, 0, 0, 0, 0), 1);
}

static void losses_are_comments(void **state)
{
	const char *const notes[] = { "one\nnote" };

	(void)state;
	hostile.losses = (struct losses){ 1, 2, 3, 4 };
	hostile.process.notes = notes;
	hostile.process.nr_notes = 1;
	write_profile();
	assert_int_equal(count("pid 1234: lost: 1 allocations, 2 frees, 3 stacks, 4 others"), 1);
	assert_int_equal(count("pid 1234: one\\x0anote"), 1);
}

static void equal_reports_make_equal_files(void **state)
{
	auto_free char *first = NULL;
	size_t len;

	(void)state;
	hostile_write(report_pprof);
	first = take_ptr(hostile.text);
	len = hostile.len;
	hostile_write(report_pprof);
	assert_int_equal(hostile.len, len);
	assert_memory_equal(hostile.text, first, len);
}

static void errors_are_returned(void **state)
{
	(void)state;
	hostile_errors(report_pprof);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, hostile_begin, hostile_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(text_is_escaped_and_once),	      TEST(verdicts_split_samples),
		TEST(a_filter_takes_nothing_twice),   TEST(losses_are_comments),
		TEST(equal_reports_make_equal_files), TEST(errors_are_returned),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	free(plain);
	return failed;
}

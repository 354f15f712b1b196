/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The straight line through points and its uncertainty; reports that name processes twice or are damaged. */
#include "user/report/series.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void line(void **state)
{
	const double x[] = { 0, 1, 2, 3, 4 }, exact[] = { 7, 9, 11, 13, 15 }, near[] = { 1, 2, 4, 4, 6 },
		     noise[] = { 5, 9, 5, 9, 5 }, same[] = { 2, 2, 2, 2, 2 };
	double flat[64], hours[64];
	struct series_slope s = series_slope(x, exact, 5);

	(void)state;
	assert_true(s.per_hour > 1.999999 && s.per_hour < 2.000001 && s.error < 1e-6);
	assert_true(s.has_error && s.is_significant);
	/* Slope 12/10; the squares of the residuals add up to 0.8; sqrt(0.8 / 3 / 10) = 0.16330. */
	s = series_slope(x, near, 5);
	assert_true(s.per_hour > 1.199999 && s.per_hour < 1.200001);
	assert_true(s.error > 0.16329 && s.error < 0.16331 && s.is_significant);
	s = series_slope(x, noise, 5);
	assert_true(s.has_error && !s.is_significant && s.error > 0.5);
	s = series_slope(x, same, 5);
	assert_true(s.per_hour == 0 && s.has_error && !s.is_significant);
	/* Many equal values: no rounding error is called growth. */
	for (size_t nr = 3; nr <= ARRAY_SIZE(flat); nr++) {
		for (size_t i = 0; i < nr; i++) {
			flat[i] = 49255;
			hours[i] = (double)(i * i) / 7;
		}
		s = series_slope(hours, flat, nr);
		assert_true(s.per_hour == 0 && s.error == 0 && s.has_error && !s.is_significant);
	}
	/* Two points have no uncertainty, equal times no slope. */
	s = series_slope(x, exact, 2);
	assert_true(s.per_hour == 2 && !s.has_error && !s.is_significant);
	s = series_slope(same, exact, 5);
	assert_true(s.per_hour == 0 && !s.has_error && !s.is_significant);
	s = series_slope(x, exact, 0);
	assert_true(s.per_hour == 0 && !s.has_error);
}

static int add(struct series *s, const char *name, const char *text, size_t len)
{
	const char *why = NULL;
	size_t at = 0;
	char *copy = malloc(len ? len : 1);
	int err;

	/* Copy the text without a byte more, so that a sanitizer finds reads behind it. */
	memcpy(copy, text, len);
	err = series_add(s, name, copy, len, &why, &at);
	free(copy);
	return err;
}

#define STACK(bytes) "{\"function\": \"malloc\", \"live_bytes\": " #bytes ", \"live_blocks\": 1}"
#define PROCESS(pid, comm, bytes)                                                                            \
	"{\"pid\": " #pid ", \"comm\": \"" comm "\", \"stacks\": [" STACK(bytes) "]}"
#define REPORT(time, processes)                                                                              \
	"{\"schema\": \"heaptap-report/2\", \"time_ns\": " #time ", \"processes\": [" processes "]}"

static struct series *series_of(const char *const texts[], size_t nr)
{
	struct series *s;

	assert_int_equal(series_new(&s), 0);
	for (size_t i = 0; i < nr; i++)
		assert_int_equal(add(s, "r.json", texts[i], strlen(texts[i])), 0);
	assert_int_equal(series_end(s), 0);
	return s;
}

/* A process that a report has twice, apart, is added up, and a second name of a process loses no other. */
static void twice(void **state)
{
	static const char *const texts[] = {
		REPORT(7200000000000, PROCESS(1, "a", 9) ", " PROCESS(2, "a", 1) ", " PROCESS(1, "a", 1)),
		REPORT(3600000000000,
		       PROCESS(1, "a", 5) ", {\"pid\": 3, \"comm\": \"a\", \"stacks\": [" STACK(
			       6) "], \"comm\": \"b\"}, " PROCESS(4, "c", 18446744073709551615)),
		REPORT(0, PROCESS(1, "a", 0)),
	};
	struct series *s = series_of(texts, ARRAY_SIZE(texts));
	const struct series_line *list;
	size_t nr;

	(void)state;
	list = series_processes(s, &nr);
	assert_int_equal(nr, 4);
	assert_string_equal(list[0].comm, "a");
	assert_int_equal(list[0].pid, 1);
	assert_int_equal(list[0].nr, 3);
	assert_int_equal(list[0].first, 0);
	assert_int_equal(list[0].last, 10);
	assert_int_equal(list[0].nr_grew, 2);
	assert_true(list[0].slope.per_hour == 5);
	assert_int_equal(list[0].nr_callers, 1);
	assert_int_equal(list[0].callers[0].last, 10);
	series_free(s);
}

static char *printed(const struct series *s, bool is_json)
{
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	assert_non_null(out);
	assert_int_equal(is_json ? series_write_json(out, s) : series_write_text(out, s, 0), 0);
	fclose(out);
	return text;
}

static void hostile(void **state)
{
	static const char *const texts[] = {
		REPORT(0, PROCESS(1, "e\\u001b[1m", 0)),
		REPORT(1, PROCESS(1, "e\\u001b[1m", 18446744073709551615)),
		REPORT(18446744073709551615, PROCESS(9, "one", 1)),
	};
	struct series *s = series_of(texts, ARRAY_SIZE(texts));
	char *text = printed(s, false);

	(void)state;
	assert_null(strchr(text, '\x1b'));
	assert_non_null(strstr(text, "e\\x1b[1m: +"));
	assert_non_null(strstr(text, "uncertain (fewer than 3 reports)"));
	assert_non_null(strstr(text, "1 process is in one report only: left out."));
	free(text);
	text = printed(s, true);
	assert_non_null(strstr(text, "\"standard_error\": null"));
	free(text);
	series_free(s);
	/* A report that is cut anywhere is refused. */
	for (size_t len = 0; len < strlen(texts[1]); len++) {
		assert_int_equal(series_new(&s), 0);
		assert_int_equal(add(s, "cut", texts[1], len), -EBADMSG);
		assert_int_equal(series_end(s), 0);
		series_free(s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(line),
		cmocka_unit_test(twice),
		cmocka_unit_test(hostile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The moments of --between: how they are parsed, and when they pass. */
#include "user/stream/span.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SEC 1000000000ULL

static struct span parsed(const char *text)
{
	struct span span;
	const char *why;

	assert_int_equal(span_parse(&span, text, &why), 0);
	return span;
}

static void typed(void **state)
{
	static const char *const wrong[] = {
		"",	  "1s",		 "1s,",	    ",1s",   "1s,2s,",	 "2s,1s",
		"end,2s", "1s,2s,3s,4s", "end,end", "end,x", "1s,3s,2s", "1s,,2s"
	};
	char longest[80] = "1s,";
	struct span span = parsed("1m30s,loaded");
	const char *why;

	(void)state;
	assert_int_equal(span.marks[SPAN_FROM].kind, SPAN_AT_TIME);
	assert_true(span.marks[SPAN_FROM].ns == 90 * SEC);
	assert_int_equal(span.marks[SPAN_TO].kind, SPAN_AT_NAME);
	assert_string_equal(span.marks[SPAN_TO].name, "loaded");
	assert_int_equal(span.marks[SPAN_AT].kind, SPAN_WITH_LAST);
	span = parsed("start,2s,end");
	assert_true(span.marks[SPAN_FROM].ns == 0);
	assert_int_equal(span.marks[SPAN_AT].kind, SPAN_AT_END);
	span = parsed("a b,end,end");
	assert_string_equal(span.marks[SPAN_FROM].name, "a b");
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		why = NULL;
		assert_int_equal(span_parse(&span, wrong[i], &why), -EINVAL);
		assert_non_null(why);
	}
	memset(longest + 3, 'x', SPAN_NAME_LEN - 1);
	assert_int_equal(span_parse(&span, longest, &why), 0);
	longest[3 + SPAN_NAME_LEN - 1] = 'x';
	assert_int_equal(span_parse(&span, longest, &why), -EINVAL);
}

static void times(void **state)
{
	struct span span = parsed("1s,3s");
	struct span_course c = { .span = &span, .start_ns = 10 * SEC };

	(void)state;
	assert_false(span_pass(&c, 11 * SEC - 1, NULL));
	assert_true(span_pass(&c, 11 * SEC + 5, NULL));
	assert_true(c.times[SPAN_FROM] == 11 * SEC);
	assert_false(span_pass(&c, 11 * SEC + 5, NULL));
	/* One event after all three moments. */
	assert_true(span_pass(&c, 20 * SEC, NULL));
	assert_true(span_pass(&c, 20 * SEC, NULL));
	assert_true(c.times[SPAN_TO] == 13 * SEC && c.times[SPAN_AT] == 13 * SEC);
	assert_false(span_pass(&c, 30 * SEC, NULL));
	assert_false(span_pass_end(&c, false));
}

static void markers(void **state)
{
	struct span span = parsed("a,a,10s");
	struct span_course c = { .span = &span };

	(void)state;
	assert_false(span_pass(&c, 1 * SEC, NULL));
	assert_false(span_pass(&c, 2 * SEC, "b"));
	assert_true(span_pass(&c, 3 * SEC, "a"));
	assert_false(span_pass(&c, 4 * SEC, "b"));
	/* The second marker comes after the time of AT. */
	assert_true(span_pass(&c, 12 * SEC, "a"));
	assert_true(span_pass(&c, 12 * SEC, NULL));
	assert_true(c.times[SPAN_TO] == 12 * SEC && c.times[SPAN_AT] == 12 * SEC);
}

static void ends(void **state)
{
	struct span span = parsed("1s,5s,end"), open = parsed("1s,end");
	struct span_course c = { .span = &span, .last_ns = 3 * SEC };
	struct span_course early = c, whole = { .span = &open, .last_ns = 3 * SEC }, none = c;

	(void)state;
	assert_true(span_pass(&c, 2 * SEC, NULL));
	assert_false(span_pass_end(&c, false)); /* the recording has no fifth second */
	assert_true(span_pass(&early, 2 * SEC, NULL));
	assert_true(span_pass_end(&early, true)); /* the recording breaks off before the fifth second */
	assert_true(span_pass_end(&early, true));
	assert_int_equal(early.nr, NR_SPAN_MOMENTS);
	assert_true(early.times[SPAN_AT] == 3 * SEC);
	assert_true(span_pass(&whole, 2 * SEC, NULL));
	assert_true(span_pass_end(&whole, false));
	assert_true(span_pass_end(&whole, false));
	assert_true(whole.times[SPAN_TO] == 3 * SEC && whole.nr == NR_SPAN_MOMENTS);
	none.last_ns = SEC / 2;
	assert_false(span_pass_end(&none, true)); /* the span has not begun */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(typed),
		cmocka_unit_test(times),
		cmocka_unit_test(markers),
		cmocka_unit_test(ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

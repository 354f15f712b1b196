/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Growth of the bytes that are always live, whatever comes and goes, over any time, with gaps between events. */
#include "user/heap/trend.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define MS  1000000ULL
#define SEC (1000 * MS)

static void too_short(void **state)
{
	struct trend t = { 0 };
	struct trend_growth g;

	(void)state;
	assert_false(trend_growth(&t, &g));
	for (u64 i = 0; i < 90; i++)
		trend_add(&t, 5 * SEC + i * 10 * MS, i);
	assert_false(trend_growth(&t, &g));
}

static void level_with_peaks(void **state)
{
	struct trend t = { 0 };
	struct trend_growth g;

	(void)state;
	for (u64 i = 0; i < 10000; i++)
		trend_add(&t, 7 * SEC + i * MS, i % 37 ? 1000000 + i * 100 : 500);
	assert_true(trend_growth(&t, &g));
	assert_int_equal(g.before, 500);
	assert_int_equal(g.after, 500);
	assert_int_equal(trend_permille(&g), 0);
}

static void grows(void **state)
{
	(void)state;
	/* Any length of time: joining slots does not lose the least value. */
	for (u64 seconds = 2; seconds < 200000; seconds *= 3) {
		struct trend t = { 0 };
		struct trend_growth g;

		for (u64 i = 0; i < 3000; i++)
			trend_add(&t, 7 * SEC + i * seconds * SEC / 3000, 3000 + i);
		assert_true(trend_growth(&t, &g));
		assert_true(g.before >= 3000 + 800 && g.before <= 3000 + 1100);
		assert_true(g.after >= 3000 + 1850 && g.after <= 3000 + 2100);
		assert_true(trend_permille(&g) > 200 && trend_permille(&g) < 300);
	}
}

static void gaps_and_extremes(void **state)
{
	struct trend t = { 0 };
	struct trend_growth g = { 0, UINT64_MAX };

	(void)state;
	assert_int_equal(trend_permille(&g), UINT32_MAX);
	g = (struct trend_growth){ UINT64_MAX, 0 };
	assert_int_equal(trend_permille(&g), 0);
	trend_add(&t, SEC, 100);
	trend_add(&t, 0, 90); /* a clock that went back */
	trend_add(&t, SEC + 40 * 86400 * SEC, 200);
	trend_add(&t, SEC + 80 * 86400 * SEC, 300);
	assert_true(trend_growth(&t, &g));
	assert_true(g.after >= g.before);
	assert_int_equal(t.least[0], 90);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(too_short),
		cmocka_unit_test(level_with_peaks),
		cmocka_unit_test(grows),
		cmocka_unit_test(gaps_and_extremes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

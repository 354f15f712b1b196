/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of the rates of a session, and of the line that shows them. */
#include "user/top/status_line.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const u64 S = 1000000000;

static void add(struct meter *m, u64 time_ns, u64 cpu_ns, u64 events, u64 live_bytes)
{
	struct meter_sample sample = { .time_ns = 100 * S + time_ns,
				       .cpu_ns = cpu_ns,
				       .sums = { .live_bytes = live_bytes,
						 .live_blocks = live_bytes / 16,
						 .events = events,
						 .nr_running = 1 } };

	meter_add(m, &sample);
}

static void test_rates(void **state)
{
	struct meter m = { 0 };
	u64 time_ns;

	(void)state;
	assert_int_equal(meter_growth(&m, &time_ns), 0);
	add(&m, 0, 5 * S, 1000, 500);
	assert_int_equal(meter_events_per_s(&m), 0);
	assert_int_equal(meter_cpu_permille(&m), 0);
	add(&m, 2 * S, 5 * S + S / 50, 5000, 300);
	assert_int_equal(meter_elapsed_ns(&m), 2 * S);
	assert_int_equal(meter_events_per_s(&m), 2000);
	assert_int_equal(meter_cpu_permille(&m), 10);
	assert_int_equal(meter_growth(&m, &time_ns), -200);
	assert_int_equal(time_ns, 2 * S);
}

/* Growth is that of the last samples: what was before does not count. */
static void test_growth_forgets(void **state)
{
	struct meter m = { 0 };
	u64 time_ns;

	(void)state;
	for (u64 i = 0; i <= 25; i++)
		add(&m, i * S, 0, i, i < 10 ? 1000000 * i : 1000);
	assert_int_equal(meter_growth(&m, &time_ns), 0);
	assert_int_equal(time_ns, (METER_PAST - 1) * S);
	add(&m, 26 * S, 0, 26, 5000);
	assert_int_equal(meter_growth(&m, &time_ns), 4000);
}

/* A process that executes another program begins to count anew: that is no negative rate. */
static void test_fewer_events(void **state)
{
	struct meter m = { 0 };

	(void)state;
	add(&m, 0, 0, 5000, 0);
	add(&m, S, 0, 10, 0);
	assert_int_equal(meter_events_per_s(&m), 0);
}

static void test_line(void **state)
{
	static const struct {
		u32 columns;
		const char *text;
	} cases[] = {
		{ 200, "0:07  live 1.53 MiB in 100,000 blocks  +1.53 MiB in 7 s  lost 0  1,000 events/s  "
		       "heaptap 2.0 % of a CPU" },
		{ 79, "0:07  live 1.53 MiB in 100,000 blocks  +1.53 MiB in 7 s  lost 0  1,000 events/s" },
		{ 63, "0:07  live 1.53 MiB in 100,000 blocks  +1.53 MiB in 7 s  lost 0" },
		{ 62, "0:07  live 1.53 MiB  +1.53 MiB in 7 s  lost 0" },
		{ 30, "0:07  live 1.53 MiB  lost 0" },
		{ 19, "0:07  live 1.53 MiB" },
		{ 18, "live 1.53 MiB" },
		{ 5, "" },
		{ 0, "" },
	};
	struct meter m = { 0 };
	char text[200], small[16];

	(void)state;
	add(&m, 0, 0, 0, 0);
	add(&m, 5 * S, 0, 8000, 0);
	add(&m, 7 * S, S / 25, 10000, 1600000);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		status_line_text(&m, cases[i].columns, text, sizeof(text));
		assert_string_equal(text, cases[i].text);
		assert_true(strlen(text) <= cases[i].columns);
	}
	m.now.probes_permille = 853;
	status_line_text(&m, 200, text, sizeof(text));
	assert_non_null(
		strstr(text, "breakpoints 85.3 % of its time  1,000 events/s  heaptap 2.0 % of a CPU"));
	status_line_text(&m, 80, text, sizeof(text));
	assert_non_null(strstr(text, "breakpoints 85.3 % of its time"));
	status_line_text(&m, 200, small, sizeof(small));
	assert_string_equal(small, "live 1.53 MiB");
	m.now.sums.is_sampled = true;
	status_line_text(&m, 200, text, sizeof(text));
	assert_non_null(strstr(text, "live ~1.53 MiB in ~100,000 blocks  ~+1.53 MiB in 7 s"));
}

static void test_clock_and_losses(void **state)
{
	struct meter m = { 0 };
	struct meter_sample late = { .time_ns = 3725 * S, .sums = { .live_blocks = 1, .lost = 1234 } };
	struct meter_sample first = { .time_ns = 0 };
	char text[200];

	(void)state;
	meter_add(&m, &first);
	meter_add(&m, &late);
	status_line_text(&m, 200, text, sizeof(text));
	assert_non_null(strstr(text, "1:02:05  live 0 B in 1 block  +0 B in 3725 s  lost 1,234"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rates),
		cmocka_unit_test(test_growth_forgets),
		cmocka_unit_test(test_fewer_events),
		cmocka_unit_test(test_line),
		cmocka_unit_test(test_clock_and_losses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

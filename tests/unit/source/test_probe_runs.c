/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The cost of probes for the targets. */
#include "user/source/probe_runs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "user/source/kernel_facts.h"

static const struct way_to_probe way = { .entry_ns = 1000, .stepped_ns = 3000, .return_ns = 500 };

static void runs_are_those_since_then(void **state)
{
	const struct probe_runs then = { .time_ns = 7, .nr_entries = 3, .nr_own = 1, .nr_calls = 2 };
	const struct probe_runs now = { .time_ns = 50007,
					.nr_entries = 103,
					.nr_stepped = 10,
					.nr_returns = 60,
					.nr_own = 171,
					.nr_calls = 102 };
	struct probe_runs runs;

	(void)state;
	probe_runs_between(&runs, &then, &now, &way);
	assert_int_equal(runs.time_ns, 50000);
	assert_int_equal(runs.nr_calls, 100);
	assert_int_equal(runs.traps_ns, 160000);
}

/* As in a server whose calls come behind a sleep: caches are cold, and each way takes longer than in the trial. */
static void cold_ways_cost_more(void **state)
{
	const struct probe_runs then = { .inside_ns = 900, .nr_inside = 1 };
	const struct probe_runs now = { .time_ns = 50000,
					.nr_entries = 100,
					.nr_stepped = 10,
					.nr_returns = 60,
					.nr_own = 170,
					.nr_calls = 100,
					.inside_ns = 900 + 50 * 1600,
					.nr_inside = 51,
					.least_inside_ns = 600 };
	struct probe_runs runs;

	(void)state;
	probe_runs_between(&runs, &then, &now, &way);
	assert_int_equal(runs.traps_ns, 160000 + 170 * (1600 - 600));
}

/* A function whose first instruction the kernel does not emulate: the CPU makes a step, and traps again. */
static void steps_at_entries_cost_more(void **state)
{
	const struct probe_runs then = { .nr_own_steps = 5 };
	struct probe_runs now = { .nr_entries = 100, .nr_own = 100, .nr_own_steps = 45, .nr_calls = 50 },
			  runs;

	(void)state;
	probe_runs_between(&runs, &then, &now, &way);
	assert_int_equal(runs.traps_ns, 60 * 1000 + 40 * 3000);
	now.nr_entries = 200;
	probe_runs_between(&runs, &then, &now, &way);
	assert_int_equal(runs.traps_ns, 60 * 1000 + 40 * 3000);
}

static void other_processes_pay_for_their_own_runs(void **state)
{
	const struct probe_runs then = { 0 };
	struct probe_runs now = { .time_ns = 100000, .nr_entries = 300, .nr_returns = 100, .nr_own = 100 },
			  runs;

	(void)state;
	probe_runs_between(&runs, &then, &now, &way);
	assert_int_equal(runs.traps_ns, 350000 / 4);
	assert_int_equal(runs.time_ns, 100000 - 300 * 150);
	/* A program that knows no target has less to do. */
	now.time_ns = 20000;
	probe_runs_between(&runs, &then, &now, &way);
	assert_int_equal(runs.time_ns, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(runs_are_those_since_then),
		cmocka_unit_test(cold_ways_cost_more),
		cmocka_unit_test(steps_at_entries_cost_more),
		cmocka_unit_test(other_processes_pay_for_their_own_runs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

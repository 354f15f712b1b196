/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The answer at the beginning of the text report, and possible leaks. */
#include "tests/unit/report/report_fixture.c"

/* Blocks of the first caller with a verdict, and of all. */
static void set_sum(struct leaks *l, enum scan_verdict verdict, u64 blocks, u64 bytes)
{
	const struct scan_sum sum = { .blocks = blocks, .bytes = bytes };

	l->rows[0].sums.of[verdict] = sum;
	l->result.sums.of[verdict] = sum;
}

static void verdict_comes_first(void **state)
{
	struct leak_row rows[1] = { 0 };
	struct leaks leaks = { .has_verdict = true, .rows = rows, .nr_rows = 1 };

	(void)state;
	fill();
	process.leaks = &leaks;
	write_report(report_text);
	starts("no leaks; 100.6 KiB live in 4 blocks\nprog (pid 1234)");
	set_sum(&leaks, SCAN_UNSURE, 1, 10);
	write_report(report_text);
	starts("no definite leaks; 10 B in 1 block unsure; 100.6 KiB live in 4 blocks\n");
	set_sum(&leaks, SCAN_POSSIBLE, 2, 20);
	write_report(report_text);
	starts("no definite leaks; 20 B in 2 blocks possibly leaked; 10 B in 1 block unsure; 100.6 KiB");
	set_sum(&leaks, SCAN_DEFINITE, 3, 2048);
	write_report(report_text);
	losses.frees = 2;
	write_report(report_text);
	starts("leaks 2,048 B in 3 blocks, 1 place (make_node at list.c:42)\nnot exact: 2 events were lost\nprog");
	process.unwatched = "no allocator found";
	write_report(report_text);
	starts("no verdict: nothing could be watched: no allocator found\nprog");
}

static void possible_leaks_are_one_line(void **state)
{
	struct leak_row rows[1] = { 0 };
	struct leaks leaks = { .has_verdict = true, .rows = rows, .nr_rows = 1 };

	(void)state;
	fill();
	process.leaks = &leaks;
	set_sum(&leaks, SCAN_POSSIBLE, 2, 20);
	write_report(report_text);
	has("\nPossibly leaked (-v lists the callers)\n  prog: 20 B in 2 blocks of 1 caller\n");
	lacks("callers with leaks");
	report.options.verbose = true;
	write_report(report_text);
	has("\n1 caller with leaks\n\n#1   20 B possibly leaked in 2 blocks, by ");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = { TEST(verdict_comes_first), TEST(possible_leaks_are_one_line) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}

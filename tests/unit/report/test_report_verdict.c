/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The answer at the beginning of the text report, and possible leaks. */
#include "tests/unit/report/report_fixture.c"
#include "user/report/short_name.h"
#include "user/scan/leaks.h"

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
	starts("no leaks among blocks since the attach (older ones: heaptap scan 1234);\n"
	       "    100.6 KiB live in 4 blocks\n");
	process.lacks_books = true;
	write_report(report_text);
	starts("no leaks among blocks since the attach (no census can judge older ones);\n"
	       "    100.6 KiB live in 4 blocks\n");
	process.lacks_books = false;
	leaks.suppressed = (struct scan_sum){ .blocks = 2, .bytes = 3072 };
	write_report(report_text);
	starts("no leaks among blocks since the attach (older ones: heaptap scan 1234);\n"
	       "    3,072 B in 2 blocks suppressed; 100.6 KiB live in 4 blocks\n");
	leaks.suppressed = (struct scan_sum){ 0 };
	report.goes_on = true;
	write_report(report_text);
	starts("no leaks among blocks since the attach (older ones: heaptap scan 1234 after this\n"
	       "    trace); 100.6 KiB live in 4 blocks\n");
	report.goes_on = false;
	report.is_elsewhere = true;
	write_report(report_text);
	starts("no leaks among blocks since the attach; 100.6 KiB live in 4 blocks\n");
	report.is_elsewhere = false;
	target.has_exited = true;
	write_report(report_text);
	starts("no leaks among blocks since the attach; 100.6 KiB live in 4 blocks\n");
	target.has_exited = false;
	target.is_started = true;
	write_report(report_text);
	starts("no leaks; 100.6 KiB live in 4 blocks\nprog (pid 1234)");
	set_sum(&leaks, SCAN_UNSURE, 1, 10);
	write_report(report_text);
	starts("no definite leaks; 10 B in 1 block unsure; 100.6 KiB live in 4 blocks\n");
	set_sum(&leaks, SCAN_POSSIBLE, 2, 20);
	write_report(report_text);
	starts("no definite leaks; 20 B in 2 blocks possibly leaked, from make_node (list.c:42);\n"
	       "    10 B in 1 block unsure; 100.6 KiB");
	set_sum(&leaks, SCAN_DEFINITE, 3, 2048);
	write_report(report_text);
	losses.frees = 2;
	write_report(report_text);
	starts("leaks 2,048 B in 3 blocks, from make_node (list.c:42)\nnot exact: 2 events were lost\nprog");
	process.unwatched = "no allocator found";
	write_report(report_text);
	starts("no verdict: nothing could be watched: no allocator found\nprog");
}

/* Code of the program without a name is named by its offset, and not by a function that is further out. */
static void worst_place_may_be_an_offset(void **state)
{
	struct leak_row rows[3] = { 0 };
	struct leaks leaks = { .has_verdict = true, .rows = rows, .nr_rows = 3 };

	(void)state;
	add_stack(70, STACK_COMPLETE, 0x700, 0x708, 0x200, 0x230, 0x240);
	add_stack(71, STACK_COMPLETE, 0x710, 0x718, 0x240);
	alloc("malloc", 0x5000, 4096, 70);
	alloc("malloc", 0x7000, 64, 71);
	process.leaks = &leaks;
	set_sum(&leaks, SCAN_DEFINITE, 1, 4096);
	write_report(report_text);
	starts("leaks 4,096 B in 1 block, from prog+0x700\n");
	rows[1].sums.of[SCAN_DEFINITE] = (struct scan_sum){ .blocks = 1, .bytes = 8192 };
	write_report(report_text);
	starts("leaks 4,096 B in 1 block, most of it from prog+0x710\n");
}

/* Parameters go first, then template arguments from the inside out. What fits stays. */
static void long_names_are_shortened(void **state)
{
	static const struct {
		const char *name;
		size_t width;
		const char *shown;
	} cases[] = {
		{ "make_node(int)", 14, "make_node(int)" },
		{ "make_node(int, char const*) const", 20, "make_node(...) const" },
		{ "std::map<int, std::list<int>>::find(int const&)", 46,
		  "std::map<int, std::list<int>>::find(...)" },
		{ "std::map<int, std::list<longer_name>>::find(int const&)", 40,
		  "std::map<int, std::list<...>>::find(...)" },
		{ "std::map<int, std::list<longer_name> >::find(int)", 36, "std::map<...>::find(int)" },
		{ "ns::(anonymous namespace)::run<a_type, b_type>()", 40,
		  "ns::(anonymous namespace)::run<...>()" },
		{ "operator<< <char, long_type>(ostream&, long_type const&)", 30, "operator<< <...>(...)" },
		{ "box<long_type_of_it>::operator->() const", 30, "box<...>::operator->() const" },
		{ "void apply<one>(f(int)::{lambda(int)#1})", 30, "void apply<one>(...)" },
		{ "broken<<<<(int, int, int", 10, "broken<<<<(int, int, int" },
		{ "plain_name_of_a_function_in_c", 10, "plain_name_of_a_function_in_c" },
		{ "\033[2J(int, int, int, int)", 10, "\\x1b[2J(...)" },
	};
	char buf[64], *long_name;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_string_equal(short_name(buf, sizeof(buf), cases[i].name, cases[i].width),
				    cases[i].shown);
	assert_string_equal(short_name(buf, 12, "a_name_that_does_not_fit", 5), "a_name_t...");
	long_name = malloc(100001);
	assert_non_null(long_name);
	memset(long_name, '<', 100000);
	long_name[100000] = '\0';
	assert_int_equal(strlen(short_name(buf, sizeof(buf), long_name, 40)), sizeof(buf) - 1);
	free(long_name);
}

static void text_has_short_names(void **state)
{
	(void)state;
	fill();
	add_stack(72, STACK_COMPLETE, 0x140, 0x230, 0x240);
	alloc("malloc", 0x9000, 100000000, 72);
	write_report(report_text);
	has("        std::vector<...>::_M_insert(...) at /src/v.h:9\n");
	write_report(report_json);
	has(LONG_NAME);
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
	has("\nPossibly leaked (-v lists the callers)\n"
	    "  Pointers lead only into the middle of these blocks: in use, or lost.\n"
	    "  prog: 20 B in 2 blocks of 1 caller\n");
	lacks("callers with leaks");
	report.options.verbose = true;
	write_report(report_text);
	has("\n1 caller with leaks\n\n#1   20 B possibly leaked in 2 blocks, by ");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = { TEST(verdict_comes_first), TEST(possible_leaks_are_one_line),
					    TEST(worst_place_may_be_an_offset),
					    TEST(long_names_are_shortened), TEST(text_has_short_names) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Every format with hostile names and failing files; the texts of those that show callers or the heap over time. */
#include "tests/unit/report/hostile_write.h"

#include "user/lib/escape.h"
#include "user/report/format.h"
#include "user/report/measure.h"
#include "user/report/report_marks.h"
#include "user/report/report_rows.h"

/* HOSTILE_NAME as escape_text() writes it. */
#define ESCAPED "</x>]]>\"'&\\x0a\\x0d%0A::,%\\\\\\x09\\x1b[2J\\xff\\xc0\\x80\\xe2\\x80\\xae"

static void has(const char *part)
{
	if (!strstr(hostile.text, part))
		fail_msg("no \"%s\" in:\n%.10000s", part, hostile.text);
}

static size_t count(const char *part)
{
	size_t nr = 0;

	for (const char *at = hostile.text; (at = strstr(at, part)); at++)
		nr++;
	return nr;
}

static void sort_by(const char *key)
{
	hostile.report.options.sort = report_key_find(key);
	assert_non_null(hostile.report.options.sort);
}

static bool is_compressed(const struct report_format *f)
{
	return strstr(f->ending, ".gz");
}

static void text_of_targets_is_escaped(void **state)
{
	(void)state;
	for (const struct report_format *f = report_formats; f->name; f++) {
		hostile_write(f->write);
		if (is_compressed(f))
			continue;
		assert_int_equal(strlen(hostile.text), hostile.len);
		for (const char *s = hostile.text; *s; s++)
			if ((*s < ' ' && *s >= 0 && *s != '\n' && *s != '\t') || *s == 0x7f)
				fail_msg("%s: byte %d", f->name, *s);
		if (strstr(hostile.text, "\xff") || strstr(hostile.text, "\xe2\x80\xae"))
			fail_msg("%s: invalid UTF-8, or text that changes its direction", f->name);
	}
}

static void errors_are_returned(void **state)
{
	(void)state;
	hostile_judge(0, SCAN_DEFINITE, 2, 200); /* some formats show leaks alone */
	hostile.process.leaks = &hostile.leaks;
	for (const struct report_format *f = report_formats; f->name; f++)
		hostile_errors(f->write);
}

static void folded_lines(void **state)
{
	(void)state;
	hostile_write(report_folded);
	has("bare;caller;inlined;" ESCAPED ";malloc 200\n");
	has("bare;caller;inlined;calloc 5000\n");
	has("[cut: depth];bare;AAAA");
	has("AAAA;operator new(size) 7\n");
	has("[no stack taken];malloc 9\n");
	has("\\xae+0x500;malloc 11\n");
	assert_int_equal(count("\n"), 5);
	sort_by("total-blocks");
	hostile_write(report_folded);
	has(ESCAPED ";malloc 3\n");
	sort_by("age"); /* does not add up */
	hostile_write(report_folded);
	has(ESCAPED ";malloc 200\n");
}

static void separators_in_names(void **state)
{
	char *text;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	(void)state;
	assert_non_null(out);
	escape_text_and(out, "a;b\\;\n", ';');
	fclose(out);
	assert_string_equal(text, "a\\x3bb\\\\\\x3b\\x0a");
	free(text);
}

/* Without a verdict leaks are live blocks. Without live blocks all numbers of them are those of all blocks. */
static void number_that_is_shown(void **state)
{
	const struct report *r = &hostile.report;

	(void)state;
	assert_string_equal(report_measure_for(r)->name, "live-bytes");
	for (const struct report_measure *m = report_measures; m->name; m++) {
		hostile.process.leaks = &hostile.leaks;
		sort_by(m->name);
		assert_ptr_equal(report_measure_for(r), m);
		hostile.process.leaks = NULL;
		assert_string_equal(report_measure_for(r)->name, m->is_of_scan ? "live-bytes" : m->name);
	}
	for (u64 addr = 0x2000; addr < 0x50000; addr += 0x1000)
		hostile_event(EVENT_FREE, "free", addr, 0, STACK_NONE);
	sort_by("peak");
	assert_string_equal(report_measure_for(r)->name, "peak");
	sort_by("live-blocks");
	assert_string_equal(report_measure_for(r)->name, "total-bytes");
	sort_by("leaked-bytes");
	assert_string_equal(report_measure_for(r)->name, "total-bytes");
}

static void csv_columns(void **state)
{
	(void)state;
	hostile_write(report_csv);
	assert_int_equal(count("\n"), 6);
	has("1234,\"</c>\"\"\\x0a\\xff\",");
	has(",\"malloc\",\"malloc\",3,1,300,2,200,200,0,,,,,,,,,,,,");
	has(",\"inlined\",\"/src/a.h\",7,\"/bin/</x>");
	has("\"inlined < caller < bare\",,\n");
	has(",\"cut: depth\",\"AAA");
	has(",\"no stack taken\",,,,,\"\",,\n");
	hostile_judge(0, SCAN_DEFINITE, 2, 200);
	hostile.process.leaks = &hostile.leaks;
	hostile_write(report_csv);
	has(",3,1,300,2,200,200,0,2,200,0,0,0,0,0,0,0,0,,");
}

static void speedscope_profiles(void **state)
{
	(void)state;
	hostile_write(report_speedscope);
	assert_int_equal(count("\"type\": \"sampled\""), 6);
	assert_int_equal(count("{\"name\": \"inlined\", \"file\": \"/src/a.h\", \"line\": 7}"), 1);
	has("\"name\": \"live bytes, </c>\\\"\\u000a");
	has("\"endValue\": 5227,");
	has("\"activeProfileIndex\": 0,");
	hostile_judge(0, SCAN_DEFINITE, 2, 200);
	hostile.process.leaks = &hostile.leaks;
	sort_by("peak");
	hostile_write(report_speedscope);
	assert_int_equal(count("\"type\": \"sampled\""), 8);
	has("\"activeProfileIndex\": 6,");
}

static void massif_snapshots(void **state)
{
	(void)state;
	hostile_write(report_massif);
	assert_int_equal(count("heap_tree=peak\n"), 1);
	assert_int_equal(count("heap_tree=detailed\n"), 1);
	has("mem_heap_B=5227\nmem_heap_extra_B=0\nmem_stacks_B=0\nheap_tree=detailed\n"
	    "n4: 5227 (heap allocation functions) malloc/new/new[], --alloc-fns, etc.\n"
	    " n1: 5000 0x100: inlined (/src/a.h:7)\n"
	    "  n1: 5000 0x100: caller (/src/a.c:70)\n"
	    "   n0: 5000 0x400: bare (in /bin/" ESCAPED ")\n"
	    " n1: 200 0x200: " ESCAPED " (");
	has("\n n0: 9 0x0: ??? (no stack)\n n0: 18 in 2 places, all below massif's threshold (1.00%)\n");
}

static void dot_graph(void **state)
{
	(void)state;
	hostile_write(report_dot);
	has("label=\"</c>\\\"\\\\x0a\\\\xff: 5227 live bytes\"\n");
	has("[label=\"</x>]]>\\\"'&\\\\x0a\\\\x0d%0A::,%\\\\\\\\\\\\x09");
	has("AAAAAAAA...\\n7 B (0.1 %)\"");
	assert_true(hostile.len < 5000);
	has("tooltip=\"5000 here, 5200 with callees\"");
}

/* A function that calls itself counts once. */
static void recursion_counts_once(void **state)
{
	(void)state;
	hostile_stack(200, STACK_COMPLETE, (const u64[]){ 0x600, 0x601, 0x600, 0x601, 0x600, 0 });
	hostile_event(EVENT_ALLOC, "malloc", 0x90000, 1000000, 200);
	hostile_write(report_dot);
	has("+0x600\\n976.6 KiB (99.5 %)\", ");
	has("+0x601\\n0 B (0 %)\\nof 976.6 KiB (99.5 %)\"");
	assert_int_equal(count("[label=\"976.6 KiB\""), 2);
}

static void no_process_at_all(void **state)
{
	(void)state;
	hostile.report.nr_processes = 0;
	for (const struct report_format *f = report_formats; f->name; f++)
		hostile_write(f->write);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, hostile_begin, hostile_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(text_of_targets_is_escaped), TEST(errors_are_returned),  TEST(folded_lines),
		TEST(separators_in_names),	  TEST(number_that_is_shown), TEST(csv_columns),
		TEST(speedscope_profiles),	  TEST(massif_snapshots),     TEST(dot_graph),
		TEST(recursion_counts_once),	  TEST(no_process_at_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Formats of CI systems: every leak and every wrong release is there, doubts never pass, text cannot break out. */
#include "tests/unit/report/hostile_write.h"

#include "user/report/format.h"

static int begin(void **state)
{
	unsetenv("GITHUB_WORKSPACE");
	return hostile_begin(state);
}

static void has(const char *part)
{
	if (!strstr(hostile.text, part))
		fail_msg("no \"%s\" in:\n%.3000s", part, hostile.text);
}

static void lacks(const char *part)
{
	if (strstr(hostile.text, part))
		fail_msg("\"%s\" in:\n%.3000s", part, hostile.text);
}

static size_t count(const char *part)
{
	size_t nr = 0;

	for (const char *s = hostile.text; (s = strstr(s, part)); s++)
		nr++;
	return nr;
}

/* Rows 0 to 2 leak: definitely with more through it, possibly, indirectly. A double and a bad release. */
static void leak(void)
{
	hostile.process.leaks = &hostile.leaks;
	hostile_judge(0, SCAN_DEFINITE, 2, 200);
	hostile.rows[0].through = (struct scan_sum){ 1, 7 };
	hostile_judge(1, SCAN_POSSIBLE, 1, 5000);
	hostile_judge(2, SCAN_INDIRECT, 1, 7);
	hostile_event(EVENT_FREE, "free", 0x1000, 0, 101);
	hostile_event(EVENT_FREE, "free", 0xdead0, 0, 100);
	hostile_event(EVENT_FREE, "free", 0x20000, 0, 100);
}

/* No byte of a target but printable ones. */
static void check_bytes(void)
{
	for (const u8 *s = (const u8 *)hostile.text; *s; s++)
		if ((*s < 0x20 && *s != '\n') || *s >= 0x7f)
			fail_msg("byte 0x%02x behind \"%.40s\"", *s, s - 40);
}

static void junit_has_a_test_for_each_finding(void **state)
{
	(void)state;
	leak();
	hostile_write(report_junit);
	check_bytes();
	has("tests=\"5\" failures=\"4\" errors=\"0\" skipped=\"1\" time=\"20.000\"");
	has("classname=\"&lt;/c&gt;&quot;\\x0a\\xff\" name=\"definite leak in &lt;/x&gt;]]&gt;&quot;&#39;&amp;\\x0a");
	has("file=\"/src/]]&gt;--&gt;\\x0a::error::&quot;x,y:z%.c\" line=\"42\"><failure type=\"definite-leak\" "
	    "message=\"200 B in 2 blocks definitely lost, and 7 B in 1 block through them, allocated by malloc in ");
	has("<skipped message=\"5,000 B in 1 block possibly lost");
	has("type=\"double-free\"");
	has("type=\"bad-free\"");
	has("type=\"mismatched-free\"");
	lacks("]]>");
	lacks("indirectly");
	lacks("no leaks");
	lacks("no wrong releases");
	assert_int_equal(count("<testcase"), 5);
	assert_int_equal(count("</testcase>"), 5);
	/* Each tag is one of ours. */
	assert_int_equal(count("<"), count("<testcase") + count("</testcase>") + count("<failure") +
					     count("</failure>") + count("<skipped") + count("</skipped>") +
					     count("<testsuite") + count("</testsuite") +
					     count("<properties") + count("<property ") +
					     count("</properties") + count("<?xml"));
}

static void junit_passes_only_what_was_tested(void **state)
{
	(void)state;
	hostile_write(report_junit);
	has("tests=\"2\" failures=\"0\" errors=\"0\" skipped=\"1\"");
	has("name=\"no leaks\"><skipped message=\"no leak verdict was asked for\"/>");
	has("name=\"no wrong releases\"/>");
	has("<property name=\"verdict\" value=\"no leak verdict: the memory was not searched; ");
	hostile.process.leaks = &hostile.leaks;
	hostile_write(report_junit);
	has("tests=\"2\" failures=\"0\" errors=\"0\" skipped=\"0\"");
	has("name=\"no leaks\"/>");
	hostile.leaks.has_verdict = false;
	strcpy(hostile.leaks.why, "it <ended>");
	hostile.losses.frees = 3;
	hostile_write(report_junit);
	has("tests=\"3\" failures=\"0\" errors=\"2\" skipped=\"0\"");
	has("<error message=\"no leak verdict: it &lt;ended&gt;\"/>");
	has("<error message=\"events were lost: 0 allocations, 3 frees\"/>");
	lacks("name=\"no leaks");
	/* Calls that never return are no loss. */
	hostile.losses.frees = 0;
	hostile.losses.other = 3;
	hostile.losses.abandoned = 1;
	hostile_write(report_junit);
	has("<error message=\"calls may be missing: 2 other events were lost\"/>");
	hostile.losses.other = 1;
	hostile_write(report_junit);
	lacks("calls may be missing");
	hostile.process.unwatched = "static & stripped";
	hostile_write(report_junit);
	has("nothing could be watched: static &amp; stripped");
	lacks("name=\"no ");
}

/* U+FFFE and U+FFFF are valid UTF-8, but no characters of XML. */
static void junit_has_only_characters_of_xml(void **state)
{
	(void)state;
	strcpy(hostile.target.comm, "a\xef\xbf\xbe\xef\xbf\xbf\xef\xbf\xbd\xc3\xa9");
	hostile_write(report_junit);
	has("<testsuite name=\"a??\xef\xbf\xbd\xc3\xa9\"");
}

static void sarif_has_a_result_for_each_finding(void **state)
{
	(void)state;
	leak();
	hostile_write(report_sarif);
	check_bytes();
	assert_int_equal(count("\"ruleIndex\""), 6);
	has("\"ruleId\": \"definite-leak\",\n     \"ruleIndex\": 0,\n     \"level\": \"error\"");
	has("\"ruleId\": \"possible-leak\",\n     \"ruleIndex\": 1,\n     \"level\": \"warning\"");
	has("\"ruleId\": \"indirect-leak\",\n     \"ruleIndex\": 2,\n     \"level\": \"note\"");
	has("\"ruleId\": \"mismatched-free\"");
	has("\"ruleId\": \"double-free\"");
	has("\"ruleId\": \"bad-free\"");
	has("{\"uri\": \"file:///src/%5D%5D%3E--%3E%0A%3A%3Aerror%3A%3A%22x%2Cy%3Az%25.c\"}, "
	    "\"region\": {\"startLine\": 42}}");
	has("\"text\": \"released before by\"");
	has("\"executionSuccessful\": true");
	hostile.process.unwatched = "why \"not\"";
	hostile_write(report_sarif);
	has("\"text\": \"pid 1234: nothing could be watched: why \\\"not\\\"\"");
	has("\"executionSuccessful\": false");
}

static void annotations_are_one_line_each(void **state)
{
	(void)state;
	leak();
	hostile.losses.allocs = 1;
	hostile_write(report_github);
	check_bytes();
	assert_int_equal(count("\n"), 7);
	assert_int_equal(count("\n::error ") + !strncmp(hostile.text, "::error ", 8), 4);
	assert_int_equal(count("\n::warning "), 2);
	has("::notice title=heaptap::");
	has(" (pid 1234): 1 mismatched release, 1 double release, 1 release of no block, first in inlined (a.h:7); "
	    "leaks 200 B in 2 blocks, and with them 7 B in 1, from </x>");
	/* The \n of the name is the text \x0a; a line end of ours is %0A; a percent sign of the name is %25. */
	has("::error title=definite leak in </x>]]>\"'&\\x0a\\x0d%250A%3A%3A%2C%25\\\\");
	has(",file=/src/]]>-->\\x0a%3A%3Aerror%3A%3A\"x%2Cy%3Az%25.c,line=42::200 B in 2 blocks");
	has("\n::warning title=heaptap::events were lost: 1 allocations, 0 frees (pid 1234)\n");
}

static void annotations_have_no_file_without_a_line(void **state)
{
	(void)state;
	hostile.process.leaks = &hostile.leaks;
	hostile_judge(4, SCAN_DEFINITE, 1, 11);
	hostile_judge(3, SCAN_DEFINITE, 1, 9);
	hostile_write(report_github);
	assert_int_equal(count("::error title="), 2);
	lacks("file=");
	has("title=definite leak in an unknown caller::9 B");
}

/* The innermost place below the directory of the sources is blamed, and gets a relative name. */
static void places_are_relative_to_the_sources(void **state)
{
	(void)state;
	hostile.process.leaks = &hostile.leaks;
	hostile_judge(0, SCAN_DEFINITE, 2, 200);
	setenv("GITHUB_WORKSPACE", "/src//", 1);
	hostile_write(report_github);
	has("file=]]>--");
	/* Of the frames of row 0 only inlined ones further out are in a file of this name. */
	setenv("GITHUB_WORKSPACE", "/src/a.h", 1);
	hostile_write(report_github);
	has("file=/src/]]>");
	hostile_write(report_sarif);
	has("\"SRCROOT\": {\n     \"uri\": \"file:///src/a.h/\"");
}

static void errors_are_returned(void **state)
{
	(void)state;
	leak();
	hostile_errors(report_junit);
	hostile_errors(report_sarif);
	hostile_errors(report_github);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, hostile_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(junit_has_a_test_for_each_finding),  TEST(junit_passes_only_what_was_tested),
		TEST(junit_has_only_characters_of_xml),	  TEST(sarif_has_a_result_for_each_finding),
		TEST(annotations_are_one_line_each),	  TEST(annotations_have_no_file_without_a_line),
		TEST(places_are_relative_to_the_sources), TEST(errors_are_returned),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

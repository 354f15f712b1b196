/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lines of the console: words, quotes, abbreviations; the table of commands is well-formed. */
#include "user/console/console_parse.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* @line has exactly the words of @expected, separated by |; "" = no words. */
static void splits(const char *line, const char *expected)
{
	char copy[512], joined[512] = "", *words[CONSOLE_MAX_WORDS];
	int nr;

	snprintf(copy, sizeof(copy), "%s", line);
	nr = console_split(copy, words);
	assert_true(nr >= 0);
	for (int i = 0; i < nr; i++) {
		strcat(joined, words[i]);
		strcat(joined, "|");
	}
	assert_string_equal(joined, expected);
}

static void test_words(void **state)
{
	(void)state;
	splits("", "");
	splits("   \t ", "");
	splits("top", "top|");
	splits("  top  peak\t5 \n", "top|peak|5|");
	splits("status\r", "status|");
	splits("# a remark", "");
	splits("  # another", "");
	splits("report a#b #c", "report|a#b|#c|");
}

static void test_quotes(void **state)
{
	(void)state;
	splits("save 'a b'", "save|a b|");
	splits("save \"a 'b' c\".json", "save|a 'b' c.json|");
	splits("save a\\ b", "save|a b|");
	splits("save 'a\\b' \"c\\\"d\"", "save|a\\b|c\"d|");
	splits("save '' x", "save||x|");
	splits("save a\\", "save|a\\|");
}

static void test_wrong(void **state)
{
	char *words[CONSOLE_MAX_WORDS];
	char open_single[] = "save 'a", open_double[] = "\"", many[256] = "";

	(void)state;
	assert_int_equal(console_split(open_single, words), -EINVAL);
	assert_int_equal(console_split(open_double, words), -EINVAL);
	for (int i = 0; i < CONSOLE_MAX_WORDS; i++)
		strcat(many, "w ");
	assert_int_equal(console_split(many, words), CONSOLE_MAX_WORDS);
	many[0] = '\0';
	for (int i = 0; i <= CONSOLE_MAX_WORDS; i++)
		strcat(many, "w ");
	assert_int_equal(console_split(many, words), -E2BIG);
}

/* @line is the command @rest with its output in @file, "" = none. */
static void cuts(const char *line, const char *rest, const char *file, bool appends)
{
	char copy[512], *name;
	bool has_two;

	snprintf(copy, sizeof(copy), "%s", line);
	assert_int_equal(console_cut_file(copy, &name, &has_two), 0);
	assert_string_equal(name ? name : "", file);
	assert_int_equal(has_two, appends);
	splits(copy, rest);
}

static void test_files(void **state)
{
	static const char *const wrong[] = { "top >",	"top > ",     "> ",	  "top > a b",
					     "top >''", "top > >b c", "top >> #a" };
	char open_quote[] = "top > 'a", *name;
	bool appends;

	(void)state;
	cuts("top 5", "top|5|", "", false);
	cuts("top 5 > a", "top|5|", "a", false);
	cuts("top 5 >a", "top|5|", "a", false);
	cuts("top 5 >> 'a b'", "top|5|", "a b", true);
	cuts("top 5 >>a\\ b", "top|5|", "a b", true);
	/* Not at the beginning of a word, or in quotes. */
	cuts("wait live>10M", "wait|live>10M|", "", false);
	cuts("wait 'live > 10M' > a", "wait|live > 10M|", "a", false);
	cuts("save \\> \">\" '>'", "save|>|>|>|", "", false);
	cuts("# top > a b c", "", "", false);
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		char copy[64];

		snprintf(copy, sizeof(copy), "%s", wrong[i]);
		assert_int_equal(console_cut_file(copy, &name, &appends), -ENOENT);
	}
	assert_int_equal(console_cut_file(open_quote, &name, &appends), -EINVAL);
}

static void finds(const char *name, const char *expected)
{
	const struct console_command *c = NULL;

	assert_int_equal(console_find(name, &c), 0);
	assert_string_equal(c->name, expected);
}

static void test_abbreviations(void **state)
{
	(void)state;
	finds("status", "status");
	finds("stat", "status");
	finds("stac", "stacks");
	finds("q", "quit");
	finds("bl", "blocks");
	/* A complete name means that command, even if other names begin with it. */
	for (const struct console_command *c = console_commands; c->name; c++)
		finds(c->name, c->name);
}

static void test_ambiguous(void **state)
{
	const struct console_command *c = NULL;

	(void)state;
	assert_int_equal(console_find("sta", &c), -EEXIST);
	assert_non_null(console_matches("sta", 1));
	assert_null(console_matches("status", 1));
	assert_null(console_matches("statusx", 0));
}

static void test_unknown(void **state)
{
	const struct console_command *c = NULL;

	(void)state;
	assert_int_equal(console_find("blockz", &c), -ENOENT);
	assert_string_equal(c->name, "blocks");
	assert_int_equal(console_find("xyzzy", &c), -ENOENT);
	assert_null(c);
	assert_int_equal(console_find("", &c), -ENOENT);
	assert_null(c);
}

/* Each row has a function, a help line and sane limits, and all promised commands exist. */
/* Is there a word outside of [] in @args? */
static bool needs_argument(const char *args)
{
	int depth = 0;

	for (; *args; args++) {
		depth += (*args == '[') - (*args == ']');
		if (!depth && *args != ' ' && *args != ']')
			return true;
	}
	return false;
}

static void test_table(void **state)
{
	static const char *const wanted[] = { "status", "report", "top",      "stacks", "blocks", "monitor",
					      "scan",	"why",	  "baseline", "diff",	"set",	  "show",
					      "start",	"stop",	  "reset",    "save",	"record", "processes",
					      "kill",	"quit",	  "help" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++)
		finds(wanted[i], wanted[i]);
	for (const struct console_command *c = console_commands; c->name; c++) {
		assert_non_null(c->run);
		assert_non_null(c->args);
		assert_true(strlen(c->help) > 10);
		assert_true(c->min_args <= c->max_args && c->max_args < CONSOLE_MAX_WORDS);
		assert_int_equal(c->max_args > 0, *c->args != '\0');
		assert_int_equal(c->min_args > 0, needs_argument(c->args));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words),	      cmocka_unit_test(test_quotes),
		cmocka_unit_test(test_wrong),	      cmocka_unit_test(test_files),
		cmocka_unit_test(test_abbreviations), cmocka_unit_test(test_ambiguous),
		cmocka_unit_test(test_unknown),	      cmocka_unit_test(test_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

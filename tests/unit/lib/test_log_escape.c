/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of text from targets on its way to terminals, files and messages. */
#include "user/lib/escape.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "user/lib/log.h"

static const struct {
	const char *text, *shown, *json;
} cases[] = {
	{ "", "", "\"\"" },
	{ "plain ~", "plain ~", "\"plain ~\"" },
	{ "a\nb\t\r", "a\\x0ab\\x09\\x0d", "\"a\\u000ab\\u0009\\u000d\"" },
	{ "\033[31m\007\177", "\\x1b[31m\\x07\\x7f", "\"\\u001b[31m\\u0007\\u007f\"" },
	{ "\\\"", "\\\\\"", "\"\\\\\\\"\"" },
	{ "gr\303\274n \342\202\254 \360\237\230\200", "gr\303\274n \342\202\254 \360\237\230\200",
	  "\"gr\303\274n \342\202\254 \360\237\230\200\"" },
	/* C1: a terminal may take them for escape sequences. */
	{ "\302\233x", "\\xc2\\x9bx", "\"\\u009bx\"" },
	/* U+202E turns the direction of writing, U+2028 ends a line, U+200B is not seen. */
	{ "a\342\200\256b", "a\\xe2\\x80\\xaeb", "\"a\\u202eb\"" },
	{ "\342\200\250", "\\xe2\\x80\\xa8", "\"\\u2028\"" },
	{ "\342\200\213", "\\xe2\\x80\\x8b", "\"\\u200b\"" },
	{ "\342\200\246", "\342\200\246", "\"\342\200\246\"" },
	{ "\302\240", "\302\240", "\"\302\240\"" },
	/* Invalid: overlong, surrogate, beyond the last, cut, continuation alone. */
	{ "\300\257", "\\xc0\\xaf", "\"\\ufffd\\ufffd\"" },
	{ "\340\200\257", "\\xe0\\x80\\xaf", "\"\\ufffd\\ufffd\\ufffd\"" },
	{ "\355\240\200", "\\xed\\xa0\\x80", "\"\\ufffd\\ufffd\\ufffd\"" },
	{ "\360\200\200\257", "\\xf0\\x80\\x80\\xaf", "\"\\ufffd\\ufffd\\ufffd\\ufffd\"" },
	{ "\364\220\200\200", "\\xf4\\x90\\x80\\x80", "\"\\ufffd\\ufffd\\ufffd\\ufffd\"" },
	{ "\365x", "\\xf5x", "\"\\ufffdx\"" },
	{ "\342\202", "\\xe2\\x82", "\"\\ufffd\\ufffd\"" },
	{ "\360\237\230", "\\xf0\\x9f\\x98", "\"\\ufffd\\ufffd\\ufffd\"" },
	{ "\200z", "\\x80z", "\"\\ufffdz\"" },
	{ "\377\376", "\\xff\\xfe", "\"\\ufffd\\ufffd\"" },
};

/* Returns the output of @write for @text; owned by the caller. */
static char *written(void (*write)(FILE *out, const char *text), const char *text)
{
	char *data = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&data, &size);

	assert_non_null(out);
	write(out, text);
	fclose(out);
	return data;
}

static void test_forms(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char *shown = written(escape_text, cases[i].text),
		     *json = written(escape_json, cases[i].text);
		char buf[256];

		assert_string_equal(shown, cases[i].shown);
		assert_string_equal(json, cases[i].json);
		assert_string_equal(escape_buf(buf, sizeof(buf), cases[i].text), cases[i].shown);
		free(shown);
		free(json);
	}
}

static void test_csv(void **state)
{
	static const struct {
		const char *text, *csv;
	} fields[] = {
		{ "", "\"\"" },
		{ "a,b < c", "\"a,b < c\"" },
		{ "say \"x\"", "\"say \"\"x\"\"\"" },
		{ "a\nb\033", "\"a\\x0ab\\x1b\"" },
		{ "=cmd()", "\"'=cmd()\"" },
		{ "-1", "\"'-1\"" },
		{ "a=b", "\"a=b\"" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		char *csv = written(escape_csv, fields[i].text);

		assert_string_equal(csv, fields[i].csv);
		free(csv);
	}
}

/* A text of exactly its bytes on the heap: the sanitizer sees a read behind its end. */
static void test_nothing_behind_the_end(void **state)
{
	char buf[64];

	(void)state;
	for (int lead = 0x80; lead < 0x100; lead++) {
		char *text = malloc(2);

		text[0] = (char)lead;
		text[1] = '\0';
		escape_buf(buf, sizeof(buf), text);
		assert_int_equal(strlen(buf), 4);
		free(text);
	}
}

/* Cut between units, never inside one, always terminated. */
static void test_cut(void **state)
{
	static const char text[] = "a\033b\342\202\254c";
	char whole[64];

	(void)state;
	escape_buf(whole, sizeof(whole), text);
	for (size_t size = 0; size <= sizeof(whole); size++) {
		char buf[66];
		size_t len;

		memset(buf, '#', sizeof(buf));
		escape_buf(buf, size, text);
		assert_int_equal(buf[size], '#');
		if (!size)
			continue;
		len = strlen(buf);
		assert_true(len < size);
		assert_memory_equal(buf, whole, len);
		assert_true(len == 0 || len == 1 || len == 5 || len == 6 || len == 9 || len == 10);
	}
}

/* Returns the text that a message writes to stderr; owned by the caller. */
static char *said(enum log_level shown, enum log_level level, const char *text)
{
	FILE *f = tmpfile();
	int old = dup(STDERR_FILENO);
	char *data = calloc(1, 8192);

	assert_true(f && old >= 0 && data);
	log_set_level(shown);
	assert_true(log_level() == shown);
	dup2(fileno(f), STDERR_FILENO);
	errno = EBUSY;
	log_line(level, "which: %s", text);
	assert_int_equal(errno, EBUSY);
	dup2(old, STDERR_FILENO);
	close(old);
	rewind(f);
	assert_true(fread(data, 1, 8191, f) < 8191);
	fclose(f);
	log_set_level(LOG_INFO);
	return data;
}

static void says(enum log_level shown, enum log_level level, const char *text, const char *line)
{
	char *have = said(shown, level, text);

	assert_string_equal(have, line);
	free(have);
}

static void test_levels(void **state)
{
	(void)state;
	says(LOG_INFO, LOG_ERROR, "x", "heaptap: which: x\n");
	says(LOG_INFO, LOG_WARN, "x", "heaptap: warning: which: x\n");
	says(LOG_INFO, LOG_INFO, "x", "heaptap: which: x\n");
	says(LOG_INFO, LOG_DEBUG, "x", "");
	says(LOG_ERROR, LOG_WARN, "x", "");
	says(LOG_DEBUG, LOG_DEBUG, "x", "heaptap: debug: which: x\n");
}

/* One line, whatever is in it, and however long. */
static void test_one_line(void **state)
{
	char longest[5000];
	char *have;

	(void)state;
	says(LOG_INFO, LOG_ERROR, "a\nheaptap: b\033[2J", "heaptap: which: a\\x0aheaptap: b\\x1b[2J\n");
	for (int i = 0; i < 2; i++) { /* each byte four letters; each itself */
		memset(longest, "\001a"[i], sizeof(longest) - 1);
		longest[sizeof(longest) - 1] = '\0';
		have = said(LOG_INFO, LOG_ERROR, longest);
		assert_true(strlen(have) > 900);
		assert_ptr_equal(strchr(have, '\n'), have + strlen(have) - 1);
		free(have);
	}
}

/* Messages that somebody else takes, safe for a terminal. */
struct taken {
	enum log_level level;
	char line[64];
	int nr;
};

static void take(void *ctx, enum log_level level, const char *line)
{
	struct taken *t = ctx;

	t->level = level;
	t->nr++;
	snprintf(t->line, sizeof(t->line), "%s", line);
}

static void test_diverted(void **state)
{
	struct taken t = { 0 };

	(void)state;
	log_set_level(LOG_INFO);
	log_divert(take, &t);
	warn("PID %d: %s", 7, "\033[2J");
	debug("not shown");
	log_status("not shown either");
	log_divert(NULL, NULL);
	assert_int_equal(t.nr, 1);
	assert_int_equal(t.level, LOG_WARN);
	assert_string_equal(t.line, "PID 7: \\x1b[2J");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_forms),	 cmocka_unit_test(test_nothing_behind_the_end),
		cmocka_unit_test(test_cut),	 cmocka_unit_test(test_levels),
		cmocka_unit_test(test_one_line), cmocka_unit_test(test_diverted),
		cmocka_unit_test(test_csv),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* JSON token by token: what is well-formed is read as it is meant, everything else is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "user/lib/json_read.h"

/* One letter per token. */
static void tokens(const char *text, size_t len, char *out, size_t size)
{
	struct json_reader *r = malloc(sizeof(*r));
	enum json_token token;
	size_t used = 0;

	assert_non_null(r);
	json_reader_init(r, text, len);
	do {
		token = json_next(r);
		if (used < size - 1)
			out[used++] = "{}[]ks0tfnE!"[token];
	} while (token != JSON_END && token != JSON_ERROR);
	out[used] = '\0';
	free(r);
}

static void expect(const char *text, const char *want)
{
	char got[200];

	tokens(text, strlen(text), got, sizeof(got));
	if (strcmp(got, want))
		fail_msg("%s: %s, not %s", text, got, want);
}

static void well_formed(void **state)
{
	(void)state;
	expect("{}", "{}E");
	expect(" [ ] ", "[]E");
	expect("{\"a\":1,\"b\":[true,false,null,\"x\"],\"c\":{}}", "{k0k[tfns]k{}}E");
	expect("[[],[[]],{}]", "[[][[]]{}]E");
	expect("-1.5e+3", "0E");
	expect("\"\"", "sE");
}

static void not_well_formed(void **state)
{
	static const char *const texts[] = {
		"",
		"{",
		"}",
		"[",
		"]",
		"[1,]",
		"[,1]",
		"{\"a\"}",
		"{\"a\":}",
		"{\"a\":1,}",
		"{1:2}",
		"[1 2]",
		"{} {}",
		"\"",
		"\"\\q\"",
		"\"\\u12\"",
		"nul",
		"tru",
		"[1}",
		"{\"a\":1]",
		"\"a\nb\"",
		"\"\\u0000\"",
		"\"\\ud800\\u0020\"",
		"{\"a\" 1}",
		"x",
		"{\"a\":1 \"b\":2}",
		"[1]]",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		char got[200];

		tokens(texts[i], strlen(texts[i]), got, sizeof(got));
		if (got[strlen(got) - 1] != '!')
			fail_msg("%s: %s", texts[i], got);
	}
}

static void strings(void **state)
{
	static const char text[] = "\"a\\n\\\"\\\\\\/\\u00e9\\u20ac\\ud83d\\ude00\"";
	struct json_reader *r = malloc(sizeof(*r));

	(void)state;
	assert_non_null(r);
	json_reader_init(r, text, strlen(text));
	assert_int_equal(json_next(r), JSON_STRING);
	assert_string_equal(r->text, "a\n\"\\/\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
	free(r);
}

static void numbers(void **state)
{
	static const struct {
		const char *text;
		bool is_good;
		u64 value;
	} tries[] = {
		{ "0", true, 0 },
		{ "18446744073709551615", true, UINT64_MAX },
		{ "18446744073709551616", false, 0 },
		{ "-1", false, 0 },
		{ "1.5", false, 0 },
		{ "1e3", false, 0 },
	};
	struct json_reader *r = malloc(sizeof(*r));

	(void)state;
	assert_non_null(r);
	for (size_t i = 0; i < ARRAY_SIZE(tries); i++) {
		u64 value = 0;

		json_reader_init(r, tries[i].text, strlen(tries[i].text));
		assert_int_equal(json_next(r), JSON_NUMBER);
		assert_int_equal(json_number(r, &value), tries[i].is_good);
		assert_true(!tries[i].is_good || value == tries[i].value);
	}
	free(r);
}

/* Depth and lengths are bounded; NUL bytes and cut texts are no harm (F5). */
static void hostile(void **state)
{
	size_t size = 100000;
	char *text = malloc(size);
	char got[300];
	static const char whole[] = "{\"a\":[1,{\"b\":\"c\\u0041\"}],\"d\":null}";

	(void)state;
	assert_non_null(text);
	memset(text, '[', size);
	tokens(text, size, got, sizeof(got));
	assert_int_equal(strlen(got), JSON_MAX_DEPTH + 1);
	memset(text, 'a', size);
	text[0] = '"';
	tokens(text, size, got, sizeof(got));
	assert_string_equal(got, "!");
	memset(text, 0, size);
	tokens(text, size, got, sizeof(got));
	assert_string_equal(got, "!");
	free(text);
	for (size_t len = 0; len < strlen(whole); len++) {
		/* Of its own size, so that a sanitizer sees a read beyond. */
		text = malloc(len + 1);
		assert_non_null(text);
		memcpy(text, whole, len);
		tokens(text, len, got, sizeof(got));
		assert_int_equal(got[strlen(got) - 1], '!');
		free(text);
	}
}

static void skipping(void **state)
{
	static const char text[] = "{\"a\":[1,{\"b\":[]}],\"c\":2}";
	struct json_reader *r = malloc(sizeof(*r));

	(void)state;
	assert_non_null(r);
	json_reader_init(r, text, strlen(text));
	assert_int_equal(json_next(r), JSON_OBJECT_BEGIN);
	assert_int_equal(json_next(r), JSON_KEY);
	assert_int_equal(json_skip(r, json_next(r)), JSON_ARRAY_END);
	assert_int_equal(json_next(r), JSON_KEY);
	assert_string_equal(r->text, "c");
	assert_int_equal(json_skip(r, json_next(r)), JSON_NUMBER);
	assert_int_equal(json_next(r), JSON_OBJECT_END);
	assert_int_equal(json_next(r), JSON_END);
	free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(well_formed), cmocka_unit_test(not_well_formed), cmocka_unit_test(strings),
		cmocka_unit_test(numbers),     cmocka_unit_test(hostile),	  cmocka_unit_test(skipping),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The JSON writer: commas, lines and quotes where they belong. */
#include "user/lib/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static char *text;
static size_t text_len;
static FILE *out;

static int begin(void **state)
{
	(void)state;
	out = open_memstream(&text, &text_len);
	return !out;
}

static int end(void **state)
{
	(void)state;
	free(text);
	return 0;
}

static void expect(const char *expected)
{
	fclose(out);
	assert_string_equal(text, expected);
}

static void values(void **state)
{
	struct json j;

	(void)state;
	json_init(&j, out, 0);
	json_object_begin(&j, NULL);
	json_u64(&j, "max", UINT64_MAX);
	json_hex(&j, "address", 0x11d4);
	json_string(&j, "none", NULL);
	json_bool(&j, "yes", true);
	json_bool(&j, "no", false);
	json_null(&j, "null");
	json_object_end(&j);
	expect("{\"max\": 18446744073709551615, \"address\": \"0x11d4\", \"none\": null, \"yes\": true, "
	       "\"no\": false, \"null\": null}\n");
}

/* Control characters and bytes that are no text are escaped (S9). */
static void hostile_text(void **state)
{
	struct json j;

	(void)state;
	json_init(&j, out, 0);
	json_object_begin(&j, NULL);
	json_string(&j, "a\"b", "\"\\\n\033[31m\xff\xc2\x9b");
	json_object_end(&j);
	expect("{\"a\\\"b\": \"\\\"\\\\\\u000a\\u001b[31m\\ufffd\\u009b\"}\n");
}

/* In a page: no '<' that could end its element, no spaces, no lines. */
static void in_page(void **state)
{
	struct json j;

	(void)state;
	json_init(&j, out, 6);
	j.in_page = true;
	json_object_begin(&j, NULL);
	json_string(&j, "<!--", "</script>\n\"");
	json_array_begin(&j, "list");
	json_u64(&j, NULL, 1);
	json_u64(&j, NULL, 2);
	json_array_end(&j);
	json_object_end(&j);
	expect("{\"\\u003c!--\":\"\\u003c/script>\\u000a\\\"\",\"list\":[1,2]}\n");
}

static void lines(void **state)
{
	struct json j;

	(void)state;
	json_init(&j, out, 2);
	json_object_begin(&j, NULL);
	json_array_begin(&j, "empty");
	json_array_end(&j);
	json_array_begin(&j, "list");
	for (int i = 0; i < 2; i++) {
		json_object_begin(&j, NULL);
		json_u64(&j, "i", i);
		json_array_begin(&j, "deep");
		json_u64(&j, NULL, 1);
		json_u64(&j, NULL, 2);
		json_array_end(&j);
		json_object_end(&j);
	}
	json_array_end(&j);
	json_object_end(&j);
	expect("{\n \"empty\": [],\n \"list\": [\n  {\"i\": 0, \"deep\": [1, 2]},\n"
	       "  {\"i\": 1, \"deep\": [1, 2]}\n ]\n}\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(values, begin, end),
		cmocka_unit_test_setup_teardown(hostile_text, begin, end),
		cmocka_unit_test_setup_teardown(in_page, begin, end),
		cmocka_unit_test_setup_teardown(lines, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

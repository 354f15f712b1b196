/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Comparing two reports: which callers are equal, which numbers changed, the text; texts that are no reports. */
#include "user/report/diff.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Backtraces 0: a, main. 1 and 2: places in a file. 3: a. 4: a hostile name, main. */
#define HEAD                                                                                                 \
	"{\"schema\": \"heaptap-report/2\", \"new key\": [1, {\"a\": null}], \"duration_ns\": 2000000000, "  \
	"\"modules\": [{\"path\": \"/opt/lib/y.so\"}], \"functions\": [{\"name\": \"a\"}, {\"name\": "       \
	"\"main\"}, {\"name\": \"</script><b>\"}], \"frames\": [{\"function\": 0}, {\"function\": 1}, "      \
	"{\"function\": 2}, {\"module\": 0, \"offset\": \"0x20\"}, {\"module\": 0, \"offset\": \"0x30\"}], " \
	"\"backtraces\": [[0, 1], [3], [4], [0], [2, 1]], "
#define STACK(fn, allocs, bytes, live, backtrace)                                                            \
	"{\"function\": \"" fn "\", \"allocs\": " #allocs ", \"alloc_bytes\": " #bytes                       \
	", \"live_blocks\": " #live ", \"live_bytes\": " #live "00, \"peak_bytes\": " #bytes                 \
	", \"definite\": {\"blocks\": 1, \"bytes\": 5}, \"indirect\": {\"blocks\": 2, \"bytes\": 7}"         \
	", \"backtrace\": " #backtrace "}"
#define PROCESS(stacks)                                                                                      \
	"{\"pid\": 1, \"comm\": \"prog\", \"scan\": {\"definite\": {}}, \"lost\": {\"allocs\": 3, "          \
	"\"stacks\": 9}, \"stacks\": [" stacks "]}"

static const char *const first = HEAD "\"processes\": [" PROCESS(STACK("malloc", 10, 1000, 3, 0) ", " STACK(
	"malloc", 1, 50, 1, 1) ", " STACK("calloc", 4, 40, 4, 0)) "]}";

/* Caller a by malloc has rows in two processes. 0x20 is only in the first report, 0x30 only in the second one. */
static const char *const second = HEAD "\"processes\": [" PROCESS(STACK("malloc", 10, 1000, 3, 0) ", " STACK(
	"malloc", 2, 60, 2, 2)) ", " PROCESS(STACK("malloc", 7, 70, 5, 0) ", " STACK("calloc", 4, 40, 4,
										     0)) "]}";

static int add(struct diff *d, u32 side, const char *text, size_t len)
{
	const char *why = NULL;
	size_t at = 0;
	char *copy = malloc(len ? len : 1);
	int err;

	/* Copy the text without a byte more, so that a sanitizer finds reads behind it. */
	memcpy(copy, text, len);
	err = diff_add(d, side, copy, len, &why, &at);
	assert_true(!err || (why && at <= len));
	free(copy);
	return err;
}

static struct diff *new_diff(const char *a, const char *b)
{
	struct diff *d;

	assert_int_equal(diff_new(&d), 0);
	assert_int_equal(add(d, 0, a, strlen(a)), 0);
	assert_int_equal(add(d, 1, b, strlen(b)), 0);
	return d;
}

static void rows(void **state)
{
	struct diff *d = new_diff(first, second);
	const struct diff_row *const *list;
	size_t nr;

	(void)state;
	list = diff_rows(d, DIFF_LIVE_BYTES, &nr);
	assert_int_equal(nr, 3);
	assert_string_equal(list[0]->frames, "a\nmain\n");
	assert_string_equal(list[0]->function, "malloc");
	assert_int_equal(diff_change(list[0], DIFF_LIVE_BYTES), 500);
	assert_int_equal(diff_change(list[0], DIFF_TOTAL_BLOCKS), 7);
	assert_int_equal(diff_change(list[0], DIFF_PEAK), 70);
	assert_int_equal(diff_change(list[0], DIFF_LEAKED_BYTES), 12);
	assert_string_equal(list[1]->frames, "y.so+0x30\n");
	assert_int_equal(diff_change(list[1], DIFF_LIVE_BLOCKS), 2);
	assert_string_equal(list[2]->frames, "y.so+0x20\n");
	assert_int_equal(diff_change(list[2], DIFF_LIVE_BYTES), -100);
	diff_free(d);
}

static void totals(void **state)
{
	struct diff *d = new_diff(first, second);
	struct saved_totals t = diff_totals(d, 1);

	(void)state;
	assert_int_equal(t.nr_processes, 2);
	assert_int_equal(t.nr_scanned, 2);
	assert_int_equal(t.lost, 6); /* lost stacks are not counted here */
	assert_int_equal(t.duration_ns, 2000000000);
	assert_int_equal(t.numbers.live_blocks, 14);
	assert_int_equal(t.numbers.leaked_blocks, 12);
	assert_string_equal(diff_totals(d, 0).comm, "prog");
	diff_free(d);
}

static char *printed(struct diff *d, enum diff_key key, u32 top)
{
	const char *const names[] = { "old\x1b[1m", "new" };
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	assert_non_null(out);
	assert_int_equal(diff_write_text(out, d, key, top, false, names), 0);
	fclose(out);
	return text;
}

static void texts(void **state)
{
	struct diff *d = new_diff(first, second), *same = new_diff(first, first);
	char *text = printed(d, DIFF_LIVE_BYTES, 1);

	(void)state;
	assert_non_null(strstr(text, "old\\x1b[1m and then new\n"));
	assert_non_null(strstr(text, "  traced      prog for 2.0 s, then 2 processes for 2.0 s\n"));
	assert_non_null(strstr(
		text, "Who holds more: top 1 of 2 callers\n\n#1   +500 B, +5 blocks (300 B in 3 blocks, then "
		      "800 B in 8 blocks), by malloc\n        a\n        main\n"));
	assert_non_null(strstr(
		text, "Who holds less: 1 caller\n\n#1   -100 B, -1 block (100 B in 1 block, then none), by "
		      "malloc\n        y.so+0x20\n"));
	free(text);
	text = printed(d, DIFF_PEAK, 0);
	assert_non_null(strstr(text, "#1   +70 B (1,000 B, then 1,070 B), by malloc\n"));
	free(text);
	text = printed(same, DIFF_LIVE_BYTES, 0);
	assert_non_null(strstr(text, "  live        800 B in 8 blocks, as before\n"));
	assert_non_null(strstr(text, "No caller changed."));
	free(text);
	diff_free(d);
	diff_free(same);
}

/* A program that frees all its blocks is compared by what it allocated. */
static void falls_back(void **state)
{
	struct diff *d = new_diff(HEAD "\"processes\": [" PROCESS(STACK("malloc", 3, 30, 0, 3)) "]}",
				  HEAD "\"processes\": [" PROCESS(STACK("malloc", 9, 90, 0, 3)) "]}");

	(void)state;
	assert_int_equal(diff_key_for(d, DIFF_LIVE_BYTES), DIFF_TOTAL_BYTES);
	assert_int_equal(diff_key_for(d, DIFF_LEAKED_BYTES), DIFF_LEAKED_BYTES);
	diff_free(d);
	d = new_diff(first, second);
	assert_int_equal(diff_key_for(d, DIFF_LIVE_BYTES), DIFF_LIVE_BYTES);
	diff_free(d);
	assert_int_equal(diff_key_find("peak"), DIFF_PEAK);
	assert_int_equal(diff_key_find("average"), NR_DIFF_KEYS);
}

static void wrong(void **state)
{
	static const char *const bad[] = {
		"",
		"[]",
		"{}",
		"{\"schema\": \"heaptap-report/2\", \"processes\": []}",
		"{\"schema\": 7}",
		"{\"schema\": \"heaptap-report/1\", \"processes\": [{}]}",
		"{\"processes\": [{}]}",
		HEAD "\"processes\": {}}",
		HEAD "\"processes\": [7]}",
		HEAD "\"processes\": [{\"stacks\": [{\"allocs\": -1}]}]}",
		HEAD "\"processes\": [{\"stacks\": [{\"allocs\": 99999999999999999999999}]}]}",
		HEAD "\"processes\": [{\"lost\": {\"allocs\": null}}]}",
		HEAD "\"processes\": [{}]} x",
	};
	size_t len = strlen(second);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct diff *d;

		assert_int_equal(diff_new(&d), 0);
		assert_int_equal(add(d, 0, bad[i], strlen(bad[i])), -EBADMSG);
		diff_free(d);
	}
	for (size_t cut = 0; cut < len; cut++) {
		struct diff *d;

		assert_int_equal(diff_new(&d), 0);
		assert_int_equal(add(d, 0, second, cut), -EBADMSG);
		diff_free(d);
	}
}

/* The page has each frame once, the numbers of both sides, and no name that could leave its data. */
static void page(void **state)
{
	static const char *const evil = HEAD "\"processes\": [" PROCESS(STACK("malloc", 10, 1000, 3, 4)) "]}";
	static const char *const names[] = { "</script>", "b" };
	static const char tag[] = "id=\"report\">";
	struct diff *d = new_diff(evil, first);
	char *text = NULL, *start, *end;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	(void)state;
	assert_int_equal(diff_write_html(out, d, names), 0);
	fclose(out);
	start = strstr(text, tag);
	assert_non_null(start);
	start += strlen(tag);
	end = strstr(start, "</script>");
	assert_null(memchr(start, '<', (size_t)(end - start)));
	*end = '\0';
	/* Rows: main, </script>; then main, a; the unnamed frame; main, a by calloc. */
	assert_non_null(strstr(start, "\"node\":[1,2,3,2],\"function\":["));
	assert_non_null(strstr(start, "\"a_live_bytes\":[300,0,0,0],\"b_live_bytes\":[0,300,100,400],"));
	assert_non_null(strstr(start, "\"nodes\":{\"up\":[1,1,2,4],"));
	assert_non_null(strstr(start, "\\u003c/script>\\u003cb>"));
	free(text);
	diff_free(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows),	      cmocka_unit_test(totals), cmocka_unit_test(texts),
		cmocka_unit_test(falls_back), cmocka_unit_test(wrong),	cmocka_unit_test(page),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The HTML report: numbers and stacks in its data, and a page that hostile names cannot leave. */
#include "user/report/report.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/report/symbolize_stand_in.h"
#include "user/heap/stacks.h"
#include "user/lib/json_read.h"
#include "user/lib/sha256.h"
#include "user/report/format.h"
#include "user/report/html_tables.h"
#include "user/source/source.h"
#include "user/target/target.h"

enum { BASE = 0x400000, LONG_NAME = 100000, NR_STACKS = 1000 };

static const char *hostile; /* name of the function at 0x110 */
static char long_name[LONG_NAME + 1];

static const struct place {
	u64 offset;
	size_t nr;
	struct symbol symbols[2];
} places[] = {
	{ 0x100, 2, { { "grow", "/src/vec.h", 7, true }, { "push", "/src/vec.c", 70, false } } },
	{ 0x200, 1, { { "main", "/src/main.c", 12, false } } },
};

int symbolize(struct symbolizer *s, struct code_ref ref, const struct symbol **symbols, size_t *nr)
{
	static struct symbol one;

	(void)s;
	one = (struct symbol){ .function = ref.offset == 0x110 ? hostile : NULL };
	*symbols = &one;
	*nr = 1;
	for (const struct place *p = places; p < places + ARRAY_SIZE(places); p++) {
		if (ref.module && p->offset == ref.offset) {
			*symbols = p->symbols;
			*nr = p->nr;
		}
	}
	return 0;
}

static struct heap *heap;
static struct stack_table *stacks;
static struct module_table *modules;
static struct mapping mapping = { .start = BASE, .end = BASE + 0x1000000, .bias = BASE };
static struct mapping_list maps = { &mapping, 1, 0 };
static struct target target;
static struct losses losses;
static struct report_process process;
static struct report report;
static char *text;
static size_t len;

static int begin(void **state)
{
	(void)state;
	if (heap_new(&heap, NULL) || stack_table_new(&stacks) || module_table_new(&modules) ||
	    module_add(modules, "/usr/bin/prog", NULL, 0, &mapping.module))
		return -1;
	hostile = "plain";
	target = (struct target){ .pid = 1234, .comm = "prog", .exe = "/usr/bin/prog", .exit_status = -1 };
	process = (struct report_process){ &target, heap, stacks, &losses };
	report = (struct report){ .backend = "replay",
				  .time_ns = 30000000000,
				  .duration_ns = 20000000000,
				  .processes = &process,
				  .nr_processes = 1,
				  .symbolizer = (struct symbolizer *)&places,
				  .modules = modules };
	return 0;
}

static int end(void **state)
{
	(void)state;
	free(text);
	text = NULL;
	heap_free(heap);
	stack_table_free(stacks);
	module_table_free(modules);
	return 0;
}

static void alloc(const char *function, u64 addr, u64 size, u64 stack)
{
	const struct heap_event ev = {
		.h = { .kind = EVENT_ALLOC, .fn = alloc_fn_find(NULL, function), .pid = 1234, .tid = 1234 },
		.time_ns = 12000000000,
		.addr = addr,
		.size = size,
		.stack = stack,
	};

	assert_int_equal(heap_event(heap, &ev), 0);
}

static void add_stack(u64 id, u8 how, const u64 *offsets)
{
	struct stack_event ev = { .h = { .kind = EVENT_STACK, .pid = 1234 }, .id = id, .end = how };

	for (; offsets[ev.nr_frames]; ev.nr_frames++)
		ev.ips[ev.nr_frames] = BASE + offsets[ev.nr_frames];
	assert_int_equal(stack_table_add(stacks, &ev, &maps), 0);
}

#define add_stack(id, how, ...) add_stack(id, how, (const u64[]){ __VA_ARGS__, 0 })

static void write_page(void)
{
	FILE *out;

	free(text);
	out = open_memstream(&text, &len);
	assert_non_null(out);
	assert_int_equal(report_html(out, &report), 0);
	fclose(out);
}

static const char *data_start(void)
{
	static const char tag[] = "<script type=\"application/json\" id=\"report\">";
	const char *start = strstr(text, tag);

	assert_non_null(start);
	return start + strlen(tag);
}

/* The data between its tags must be one JSON text. */
static void data_is_json(void)
{
	static struct json_reader r;
	const char *start = data_start();
	enum json_token token;

	json_reader_init(&r, start, (size_t)(strstr(start, "</script>") - start));
	while ((token = json_next(&r)) != JSON_END)
		if (token == JSON_ERROR)
			fail_msg("no JSON at byte %zu: %.80s", json_position(&r), start + json_position(&r));
}

static void has(const char *part)
{
	if (!strstr(data_start(), part))
		fail_msg("no %s in:\n%s", part, data_start());
}

static size_t count(const char *part)
{
	size_t nr = 0;

	for (const char *p = text; (p = strstr(p, part)); p++)
		nr++;
	return nr;
}

/* Columns of numbers, one node for each frame, inlined functions too; shared outer frames once. */
static void numbers(void **state)
{
	(void)state;
	add_stack(100, STACK_COMPLETE, 0x100, 0x200);
	add_stack(101, STACK_COMPLETE, 0x110, 0x200);
	alloc("malloc", 0x1000, 1000, 100);
	alloc("malloc", 0x2000, 50, 101);
	alloc("calloc", 0x3000, 7, STACK_NONE);
	write_page();
	data_is_json();
	has("\"totals\":{\"allocs\":3,\"frees\":0,\"alloc_bytes\":1057,\"live_blocks\":3,\"live_bytes\":1057,");
	has("\"callers\":{\"nr\":3,\"node\":[2,3,-1],");
	has("\"alloc_bytes\":[1000,50,7],\"live_blocks\":1,\"live_bytes\":[1000,50,7],");
	assert_int_equal(count("\"definite_bytes\":["), 0);
	/* main is node 0; push and grow follow it; then plain, called by main too. */
	has("\"nodes\":{\"up\":[1,1,1,3],\"frame\":[0,2,1,3],\"turns\":[]}");
	has("\"modules\":[{\"path\":\"/usr/bin/prog\",\"build_id\":null}]");
	has("\"sizes\":[[4,1,7],[32,1,50],[512,1,1000]]");
	has("\"ages\":[[10000000000,3,1057]]");
}

/* A stack that is not complete begins with a mark. */
static void cut_stack(void **state)
{
	(void)state;
	add_stack(100, STACK_DEPTH, 0x999);
	add_stack(101, STACK_COMPLETE, 0x999);
	alloc("malloc", 0x1000, 1000, 100);
	alloc("malloc", 0x2000, 50, 101);
	write_page();
	data_is_json();
	has("\"nodes\":{\"up\":[1,1,3],\"frame\":[0,1,1],\"turns\":[]}");
	has("\"frames\":[[0,-1,0,-1,2],[-1,-1,0,0,0,\"0x999\"]]");
	has("\"texts\":[\"depth\",");
}

/* Names of a target end neither the data nor a string, and stay what they are (S9). */
static void hostile_names(void **state)
{
	static const char *const names[] = {
		"</script><script>alert(1)</script>",
		"<!--<script>",
		"\"quote\\ \n new line \t \r",
		"\xff\xfe bad \xc3",
		"\xe2\x80\xa8 line separator \xe2\x80\xae override",
		"{{script}}{{data}}",
	};

	(void)state;
	add_stack(100, STACK_COMPLETE, 0x110);
	alloc("malloc", 0x1000, 1000, 100);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		hostile = names[i];
		write_page();
		data_is_json();
		assert_int_equal(count("</script>"), 2);
		assert_int_equal(count("<script"), 2);
		assert_null(memchr(data_start(), '<',
				   (size_t)(strstr(data_start(), "</script>") - data_start())));
	}
	hostile = names[0];
	write_page();
	has("\"\\u003c/script>\\u003cscript>alert(1)\\u003c/script>\"");
	hostile = names[3];
	write_page();
	has("\"\\\\xff\\\\xfe bad \\\\xc3\"");
	snprintf(target.comm, sizeof(target.comm), "%s", "</script>");
	write_page();
	assert_int_equal(count("</script>"), 2);
}

static void very_long_name(void **state)
{
	(void)state;
	memset(long_name, 'x', LONG_NAME);
	hostile = long_name;
	add_stack(100, STACK_COMPLETE, 0x110);
	alloc("malloc", 0x1000, 1000, 100);
	write_page();
	has(long_name);
}

static void hash_of(const char *tag, const char *end_tag, char out[64])
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *start = strstr(text, tag) + strlen(tag);
	u8 hash[SHA256_LEN + 1] = { 0 };
	struct sha256 h;

	sha256_init(&h);
	sha256_add(&h, start, (size_t)(strstr(start, end_tag) - start));
	sha256_end(&h, hash);
	for (size_t i = 0; i < 43; i++) {
		size_t bit = 6 * i;
		u32 two = (u32)hash[bit / 8] << 8 | (bit / 8 + 1 < sizeof(hash) ? hash[bit / 8 + 1] : 0);

		out[i] = letters[two >> (10 - bit % 8) & 63];
	}
	strcpy(out + 43, "='");
}

/* The policy allows no network, and only this script and this style. */
static void policy(void **state)
{
	char script[64], style[64], want[256];

	(void)state;
	alloc("malloc", 0x1000, 1000, STACK_NONE);
	write_page();
	hash_of("<script>", "</script>", script);
	hash_of("<style>", "</style>", style);
	snprintf(want, sizeof(want),
		 "default-src 'none'; img-src data:; base-uri 'none'; form-action 'none'; "
		 "style-src 'sha256-%s; script-src 'sha256-%s\"",
		 style, script);
	assert_non_null(strstr(text, want));
	assert_int_equal(count("{{"), 0);
	assert_int_equal(count("innerHTML"), 0);
}

/* Stacks with the same outer frames cost one node each. */
static void many_stacks(void **state)
{
	(void)state;
	for (u64 i = 0; i < NR_STACKS; i++) {
		add_stack(100 + i, STACK_COMPLETE, 0x10000 + i, 0x100, 0x200);
		alloc("malloc", 0x1000 + i * 0x1000, 16, 100 + i);
	}
	write_page();
	data_is_json();
	assert_true(strstr(data_start(), "</script>") - data_start() < 100 * NR_STACKS);
}

static void write_error(void **state)
{
	FILE *full = fopen("/dev/full", "w");

	(void)state;
	assert_non_null(full);
	alloc("malloc", 0x1000, 1000, STACK_NONE);
	assert_int_not_equal(report_html(full, &report), 0);
	fclose(full);
}

#define test(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(numbers), test(cut_stack),	  test(hostile_names), test(very_long_name),
		test(policy),  test(many_stacks), test(write_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

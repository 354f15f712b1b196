/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lists of live blocks: which ones, in which order, in each format; and a list that is broken off. */
#include "user/report/report_blocks.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "user/heap/heap.h"
#include "user/heap/stacks.h"
#include "user/target/target.h"

enum { PID = 42, NR_BLOCKS = 10000 };

static struct target target = { .pid = PID, .comm = "a,\"b\"" };
static struct heap *heap;
static struct stack_table *stacks;
static struct report_process process;
static struct report report;
static char *text;

static void alloc(taddr_t addr, u64 size)
{
	const struct heap_event ev = {
		.h = { .kind = EVENT_ALLOC, .fn = alloc_fn_find(NULL, "malloc"), .pid = PID, .tid = PID },
		.time_ns = 1000000000,
		.addr = addr,
		.size = size
	};

	assert_int_equal(heap_event(heap, &ev), 0);
}

static int begin(void **state)
{
	(void)state;
	if (heap_new(&heap, NULL) || stack_table_new(&stacks))
		return -1;
	process = (struct report_process){ .target = &target, .heap = heap, .stacks = stacks };
	report = (struct report){ .processes = &process, .nr_processes = 1, .time_ns = 3000000000 };
	for (u64 i = 0; i < NR_BLOCKS; i++)
		alloc(0x100000 + i * 0x100, 1 + i % 5);
	alloc(0x1000, 77);
	return 0;
}

static int end(void **state)
{
	(void)state;
	heap_free(heap);
	stack_table_free(stacks);
	free(text);
	text = NULL;
	return 0;
}

static int list(report_blocks_fn write)
{
	size_t len;
	FILE *out;
	int err;

	free(text);
	out = open_memstream(&text, &len);
	err = write(out, &report);
	fclose(out);
	return err;
}

static size_t count(const char *word)
{
	size_t nr = 0;

	for (const char *at = text; (at = strstr(at, word)); at += strlen(word))
		nr++;
	return nr;
}

static void formats_by_ending(void **state)
{
	(void)state;
	assert_ptr_equal(report_blocks_writer("a.csv"), report_blocks_csv);
	assert_ptr_equal(report_blocks_writer("a.json"), report_blocks_json);
	assert_ptr_equal(report_blocks_writer("a"), report_blocks_text);
	assert_ptr_equal(report_blocks_writer(".csv"), report_blocks_text);
}

static void largest_first(void **state)
{
	(void)state;
	report.options.top = 3;
	assert_int_equal(list(report_blocks_csv), 0);
	assert_string_equal(text, "pid,address,size,age_ns,caller,function,stack,unsure,tid,verdict,thread\n"
				  "42,0x1000,77,2000000000,1,\"malloc\",\"\",false,42,,\"a,\"\"b\"\"\"\n"
				  "42,0x100400,5,2000000000,1,\"malloc\",\"\",false,42,,\"a,\"\"b\"\"\"\n"
				  "42,0x100900,5,2000000000,1,\"malloc\",\"\",false,42,,\"a,\"\"b\"\"\"\n");
	assert_int_equal(list(report_blocks_text), 0);
	assert_int_equal(count("\n  0x"), 3);
	assert_int_equal(count("9,998 more"), 1);
}

static void all_of_them(void **state)
{
	(void)state;
	assert_int_equal(list(report_blocks_csv), 0);
	assert_int_equal(count("\n42,0x"), NR_BLOCKS + 1);
	assert_int_equal(list(report_blocks_json), 0);
	assert_int_equal(count("\"address\": \"0x"), NR_BLOCKS + 1);
	assert_int_equal(count("\"comm\": \"a,\\\"b\\\"\""), 1);
	report.options.min_size = 5;
	assert_int_equal(list(report_blocks_csv), 0);
	assert_int_equal(count("\n42,0x"), NR_BLOCKS / 5 + 1);
}

/* Sizes and addresses of any length: a list of all blocks has the order of a list of some. */
static void in_order(void **state)
{
	u64 last_size = UINT64_MAX, last_addr = 0, random = 1;
	size_t nr = 0;

	(void)state;
	for (u32 i = 0; i < 3000; i++) {
		random = random * 6364136223846793005ULL + 1442695040888963407ULL;
		alloc(((random >> (i % 40)) | 1ULL << 40) & ~15ULL, (random >> 17) >> (i % 47));
	}
	assert_int_equal(list(report_blocks_csv), 0);
	for (char *at = text; (at = strstr(at, "\n42,0x"));) {
		u64 addr = strtoull(at + 4, &at, 16), size = strtoull(at + 1, NULL, 10);

		assert_true(size < last_size || (size == last_size && addr > last_addr));
		last_size = size;
		last_addr = addr;
		nr++;
	}
	assert_int_equal(nr, heap_totals(heap).live_blocks);
}

static int nr_asked;

static bool is_unwanted_late(void)
{
	return ++nr_asked > 4;
}

static void broken_off(void **state)
{
	static const report_blocks_fn all[] = { report_blocks_text, report_blocks_csv, report_blocks_json };

	(void)state;
	report.options.is_unwanted = is_unwanted_late;
	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		nr_asked = 0;
		assert_int_equal(list(all[i]), -ECANCELED);
		assert_true(count("0x1") < NR_BLOCKS);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(formats_by_ending, begin, end),
		cmocka_unit_test_setup_teardown(largest_first, begin, end),
		cmocka_unit_test_setup_teardown(all_of_them, begin, end),
		cmocka_unit_test_setup_teardown(in_order, begin, end),
		cmocka_unit_test_setup_teardown(broken_off, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

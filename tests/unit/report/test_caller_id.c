/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Ids of callers: equal in the next run, different for different callers, exact in JSON; and equal ids. */
#include "tests/unit/report/report_fixture.c"

#include "user/report/caller_id.h"
#include "user/report/report_rows.h"

static struct caller_ids ids;

static void compute(void)
{
	caller_ids_fini(&ids);
	assert_int_equal(caller_ids_init(&ids, &report, &process), 0);
}

static int end_ids(void **state)
{
	caller_ids_fini(&ids);
	return end(state);
}

/* Allocate with a stack of two offsets, which has the id @id in this run. */
static void caller(const char *function, u64 id, u64 inner, u64 outer)
{
	static u64 addr = 0x1000;
	struct stack_event ev = { .h = { .kind = EVENT_STACK, .pid = PID }, .id = id, .nr_frames = 2 };

	ev.ips[0] = mapping.start + inner;
	ev.ips[1] = mapping.start + outer;
	assert_int_equal(stack_table_add(stacks, &ev, &maps), 0);
	alloc(function, addr += 0x1000, 10, id);
}

/* Another run: other addresses, other ids of the source, another order. */
static void next_run_has_the_same(void **state)
{
	const taddr_t start = mapping.start;
	u64 first[3];

	(void)state;
	caller("malloc", 1000, 0x500, 0x600);
	caller("malloc", 1001, 0x501, 0x600);
	caller("malloc", 1002, 0x888, 0x600); /* no name */
	compute();
	for (u32 i = 0; i < 3; i++)
		first[i] = caller_id(&ids, i);
	assert_int_equal(end(NULL), 0);
	assert_int_equal(begin(NULL), 0);
	mapping.start = mapping.bias = start + 0x7f0000;
	mapping.end = mapping.start + 0x10000;
	caller("malloc", 77, 0x888, 0x600);
	caller("malloc", 78, 0x501, 0x600);
	caller("malloc", 79, 0x500, 0x600);
	compute();
	for (u32 i = 0; i < 3; i++)
		assert_int_equal(caller_id(&ids, i), first[2 - i]);
	assert_int_equal(ids.nr_changed, 0);
	mapping.start = mapping.bias = start;
	mapping.end = start + 0x10000;
}

static void callers_differ(void **state)
{
	(void)state;
	caller("malloc", 1000, 0x500, 0x600);
	caller("calloc", 1000, 0x500, 0x600); /* from one place */
	caller("malloc", 1001, 0x501, 0x600);
	caller("malloc", 1002, 0x600, 0x500);
	alloc("malloc", 0x10, 1, STACK_NONE);
	alloc("malloc", 0x20, 1, STACK_LOST);
	compute();
	assert_int_equal(ids.nr, 6);
	assert_int_equal(ids.nr_changed, 0);
	for (u32 i = 0; i < ids.nr; i++) {
		for (u32 k = 0; k < i; k++)
			assert_int_not_equal(caller_id(&ids, i), caller_id(&ids, k));
	}
	assert_int_equal(caller_id(&ids, 6), 0);
}

/* Two files with one build ID, as a copy has it: the smaller path hash keeps the id in each run. */
static void equal_ids_are_changed(void **state)
{
	static const u8 build_id[] = { 0xab, 0x12, 0x00, 0xff };
	struct module *of[2] = { mapping.module };
	u64 seen[2][2];

	(void)state;
	for (u32 run = 0; run < 2; run++) {
		assert_int_equal(module_add(modules, "/tmp/copy", build_id, sizeof(build_id), &of[1]), 0);
		for (u32 i = 0; i < 2; i++) {
			mapping.module = of[i ^ run];
			caller("malloc", 1000 + i, 0x500, 0x600);
		}
		compute();
		assert_int_equal(ids.nr_changed, 1);
		assert_int_not_equal(caller_id(&ids, 0), caller_id(&ids, 1));
		for (u32 i = 0; i < 2; i++)
			seen[run][i ^ run] = caller_id(&ids, i);
		assert_int_equal(end(NULL), 0);
		assert_int_equal(begin(NULL), 0);
		of[0] = mapping.module;
	}
	assert_memory_equal(seen[0], seen[1], sizeof(seen[0]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(next_run_has_the_same, begin, end_ids),
		cmocka_unit_test_setup_teardown(callers_differ, begin, end_ids),
		cmocka_unit_test_setup_teardown(equal_ids_are_changed, begin, end_ids),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

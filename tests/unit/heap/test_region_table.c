/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of the table of mappings that tests/unit/heap/test_heap.c cannot make: its memory and its budget. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "user/heap/region_table.h"

static void count_bytes(void *ctx, const struct heap_region *region, u64 bytes, bool is_last)
{
	(void)region;
	(void)is_last;
	*(u64 *)ctx += bytes;
}

/* A mapping in the middle of another one makes two more pieces, whatever the number of pieces. */
static void test_room(void **state)
{
	struct budget budget = { 0 };
	const struct heap_region region = { .row = 1 };
	struct region_table t;
	u64 cut = 0;

	(void)state;
	region_table_init(&t, &budget);
	for (u64 i = 1; i <= 100; i++) {
		taddr_t start = i << 20;

		assert_int_equal(region_table_reserve(&t), 0);
		region_table_add(&t, start, start + 0x9000, &region);
		for (u64 k = 1; k <= i % 3; k++) {
			assert_int_equal(region_table_reserve(&t), 0);
			region_table_cut(&t, start + k * 0x3000, start + k * 0x3000 + 0x1000, count_bytes,
					 &cut);
			region_table_add(&t, start + k * 0x3000, start + k * 0x3000 + 0x1000, &region);
			assert_true(t.nr_pieces <= t.max_pieces);
			assert_true(t.nr_regions <= t.max_regions);
		}
	}
	for (size_t i = 1; i < t.nr_pieces; i++)
		assert_true(t.pieces[i].end <= t.pieces[i - 1].start);
	assert_int_equal(cut, 100 * 0x1000);
	region_table_cut(&t, 0, UINT64_MAX, count_bytes, &cut);
	assert_int_equal(cut, 100 * 0x9000 + 100 * 0x1000);
	assert_int_equal(t.nr_pieces, 0);
	region_table_fini(&t);
	assert_int_equal(budget.used, 0);
}

static void test_budget(void **state)
{
	struct budget budget = { .limit = 10000 };
	const struct heap_region region = { .row = 1 };
	struct region_table t, copy;
	u64 nr = 0;

	(void)state;
	region_table_init(&t, &budget);
	while (region_table_reserve(&t) == 0) {
		region_table_add(&t, nr << 12, (nr << 12) + 1, &region);
		nr++;
	}
	assert_true(nr > 50 && budget.used <= 10000);
	assert_int_equal(region_table_copy(&copy, &t, &budget), -ENOMEM);
	budget.limit = 0;
	assert_int_equal(region_table_copy(&copy, &t, &budget), 0);
	assert_int_equal(region_table_reserve(&copy), 0);
	for (u64 i = 0; i < nr; i++)
		assert_int_equal(region_table_find(&copy, i << 12)->start, i << 12);
	assert_null(region_table_find(&copy, 1));
	assert_null(region_table_find(&copy, UINT64_MAX));
	region_table_fini(&copy);
	region_table_fini(&t);
	assert_int_equal(budget.used, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_room),
		cmocka_unit_test(test_budget),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

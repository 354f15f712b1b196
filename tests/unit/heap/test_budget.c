/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of the budget: arrays and hash tables count every byte, and change nothing when they are refused. */
#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "user/heap/budget.h"
#include "user/lib/hash_index.h"

static void test_array(void **state)
{
	struct budget b = { .limit = 4096 };
	u64 *items = NULL;
	u32 nr = 0, max = 0;

	(void)state;
	while (!budget_array(&b, items, max, (size_t)nr + 1)) {
		items[nr] = nr;
		nr++;
		assert_int_equal(b.used, max * sizeof(*items));
		assert_true(b.used <= b.limit);
	}
	/* Refused: the array and the count are as before. */
	assert_true(nr > 100 && nr == max);
	assert_int_equal(b.used, max * sizeof(*items));
	for (u32 i = 0; i < nr; i++)
		assert_int_equal(items[i], i);
	free(items);
}

static void test_index(void **state)
{
	struct budget b = { .limit = 65536 };
	struct hash_index t = { 0 }, copy;
	u64 used;

	(void)state;
	while (!budget_index(&b, &t, (size_t)t.nr + 1)) {
		assert_int_equal(hash_index_add(&t, hash_u64(t.nr), t.nr), 0);
		assert_int_equal(b.used, hash_index_bytes(&t, 0));
	}
	used = b.used;
	assert_int_equal(used, hash_index_bytes(&t, 0));
	/* The old slots and the new ones must fit in the limit together. */
	assert_true(used * 3 > b.limit && used <= b.limit);
	assert_int_equal(budget_copy_index(&b, &copy, &t), 0);
	assert_int_equal(b.used, 2 * used);
	budget_free_index(&b, &copy);
	budget_free_index(&b, &t);
	assert_int_equal(b.used, 0);
}

static void test_copy(void **state)
{
	struct budget b = { .limit = 8 };
	u32 from[2] = { 3, 4 }, *to = from;

	(void)state;
	assert_int_equal(budget_copy(&b, &to, from, sizeof(from) + 1), -ENOMEM);
	assert_int_equal(b.used, 0);
	assert_int_equal(budget_copy(&b, &to, from, sizeof(from)), 0);
	assert_true(to[0] == 3 && to[1] == 4 && b.used == sizeof(from));
	free(to);
	assert_int_equal(budget_copy(&b, &to, from, 0), 0);
	assert_null(to);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_array),
		cmocka_unit_test(test_index),
		cmocka_unit_test(test_copy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

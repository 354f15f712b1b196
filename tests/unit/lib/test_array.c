/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of arrays that grow. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "user/lib/array.h"

static void test_grows_by_half(void **state)
{
	u64 *items = NULL;
	u32 max = 0, moved = 0;

	(void)state;
	for (u32 i = 0; i < 100000; i++) {
		u32 before = max;

		assert_int_equal(array_reserve(items, max, i + 1), 0);
		assert_true(max > i);
		moved += max != before;
		items[i] = i;
	}
	assert_in_range(moved, 10, 30);
	for (u32 i = 0; i < 100000; i++)
		assert_int_equal(items[i], i);
	free(items);
}

static void test_takes_what_is_wanted(void **state)
{
	u16 *items = NULL;
	size_t max = 0;

	(void)state;
	assert_int_equal(array_reserve(items, max, 5000), 0);
	assert_int_equal(max, 5000);
	assert_int_equal(array_reserve(items, max, 10), 0);
	assert_int_equal(max, 5000);
	free(items);
}

static void test_too_large(void **state)
{
	u64 *items = NULL, *before;
	size_t max = 0;

	(void)state;
	assert_int_equal(array_reserve(items, max, 1), 0);
	items[0] = 42;
	before = items;
	assert_int_equal(array_reserve(items, max, SIZE_MAX / 4), -ENOMEM);
	assert_ptr_equal(items, before);
	assert_int_equal(items[0], 42);
	assert_int_equal(max, 16);
	free(items);
}

static void test_extends_by_one(void **state)
{
	u32 *items = NULL;

	(void)state;
	for (u32 i = 0; i < 100; i++) {
		assert_int_equal(array_extend(items, i), 0);
		items[i] = i;
	}
	for (u32 i = 0; i < 100; i++)
		assert_int_equal(items[i], i);
	free(items);
}

/* Every length up to 9, every place of the boundary, and a range that begins behind 0. */
static void test_search(void **state)
{
	(void)state;
	for (size_t nr = 0; nr < 10; nr++)
		for (size_t boundary = 0; boundary <= nr; boundary++)
			assert_int_equal(array_search(i, 0, nr, i < boundary), boundary);
	assert_int_equal(array_search(i, 3, 7, i < 2), 3);
	assert_int_equal(array_search(i, 3, 7, i < 5), 5);
	assert_int_equal(array_search(i, 3, 7, i < 99), 7);
}

/* Pages that cannot be written to stand for those that were not written to. */
static void test_clears_what_is_not_zero(void **state)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	u8 *mem = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	assert_ptr_not_equal(mem, MAP_FAILED);
	memset(mem + page, 0xa5, page);
	assert_int_equal(mprotect(mem, page, PROT_READ), 0);
	array_clear(mem, 2 * page - 1);
	for (size_t i = 0; i < 2 * page; i++)
		assert_int_equal(mem[i], i == 2 * page - 1 ? 0xa5 : 0);
	munmap(mem, 2 * page);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_grows_by_half), cmocka_unit_test(test_takes_what_is_wanted),
		cmocka_unit_test(test_too_large),     cmocka_unit_test(test_extends_by_one),
		cmocka_unit_test(test_search),	      cmocka_unit_test(test_clears_what_is_not_zero),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

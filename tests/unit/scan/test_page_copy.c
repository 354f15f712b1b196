/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reading pages that heaptap keeps: across runs, and where a mapping has no pages. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "user/scan/page_copy.h"

enum { PAGE = 4096 };

static void reads_across_runs(void **state)
{
	struct page_copy c = { 0 };
	u8 ones[PAGE], twos[PAGE], got[32];

	(void)state;
	memset(ones, 1, sizeof(ones));
	memset(twos, 2, sizeof(twos));
	assert_int_equal(page_copy_add(&c, PAGE, ones, PAGE), 0);
	assert_int_equal(page_copy_add(&c, 2 * PAGE, twos, PAGE), 0);
	assert_int_equal(page_copy_read(&c, 2 * PAGE - 16, got, 32), 32);
	assert_memory_equal(got, ones, 16);
	assert_memory_equal(got + 16, twos, 16);
	assert_int_equal(page_copy_read(&c, 3 * PAGE - 16, got, 32), 16);
	assert_int_equal(page_copy_read(&c, 3 * PAGE, got, 32), 0);
	page_copy_fini(&c);
}

static void missing_pages_of_a_whole_are_zero(void **state)
{
	struct page_copy c = { 0 };
	u8 ones[PAGE], got[2 * PAGE];
	static const u8 zeros[PAGE];

	(void)state;
	memset(ones, 1, sizeof(ones));
	memset(got, 7, sizeof(got));
	assert_int_equal(page_copy_add(&c, PAGE, ones, PAGE), 0);
	assert_int_equal(page_copy_add(&c, 3 * PAGE, ones, PAGE), 0);
	assert_int_equal(page_copy_whole(&c, PAGE, 5 * PAGE), 0);
	assert_int_equal(page_copy_read(&c, 2 * PAGE - 16, got, 32), 32);
	assert_memory_equal(got, ones, 16);
	assert_memory_equal(got + 16, zeros, 16);
	assert_int_equal(page_copy_read(&c, 3 * PAGE - 16, got, 32), 32);
	assert_memory_equal(got, zeros, 16);
	assert_memory_equal(got + 16, ones, 16);
	/* Nothing is known below the part and beyond it. */
	assert_int_equal(page_copy_read(&c, 5 * PAGE - 16, got, 32), 16);
	assert_int_equal(page_copy_read(&c, PAGE - 16, got, 32), 0);
	page_copy_fini(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_across_runs),
		cmocka_unit_test(missing_pages_of_a_whole_are_zero),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

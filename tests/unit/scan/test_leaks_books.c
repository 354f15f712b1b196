/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Verdicts from the books of an allocator on blocks that a trace knows. */
#include "tests/unit/scan_checks.h"

#include "user/scan/leaks_books.h"

/* A trace that has rested knows few blocks, not all of them are still there, and one has become larger. */
static void lost_where_the_trace_has_blocks(void **state)
{
	struct scan *own = NULL;
	struct scan_sum lost;

	(void)state;
	put(GLOBALS, block(0));
	block(1);
	block_at(HEAP + 0x1000, 16);
	block_at(HEAP + 0x1100, 64);
	assert_int_equal(scan_new(&own, &books, &w.options), 0);
	/* The last one is free; and one of before the trace is lost. */
	w.blocks[2].size = 80;
	w.blocks[3].addr = HEAP + 0x2000;
	scan_all();
	assert_int_equal(scan_is_listed(own, w.scan), -ENOENT);
	lost = scan_lost_by(own, w.scan);
	assert_int_equal(scan_result(w.scan).sums.of[SCAN_DEFINITE].blocks, 3);
	assert_int_equal(lost.blocks, 2);
	assert_int_equal(lost.bytes, 64 + 16);
	scan_free(own);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = { TEST(lost_where_the_trace_has_blocks) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Blocks in which programs have aligned addresses: what an allocator left in the first word holds nothing (T8). */
#include "tests/unit/scan_checks.h"

enum { SIZE = 96, ALIGNED = 32 };

static bool may_begin_within(const void *ctx, taddr_t addr)
{
	return ctx == NULL && addr;
}

/* Block number @n; block_at() + ALIGNED is a multiple of 64. */
static taddr_t page_block(u32 n)
{
	return block_at(HEAP + 0x1020 + 0x80 * n, SIZE);
}

static void scan_of_books(void)
{
	const struct scan_books within = { .for_each = each_block,
					   .find = find_block,
					   .may_begin_within = may_begin_within };

	assert_int_equal(scan_new(&w.scan, &within, &w.options), 0);
	assert_int_equal(scan_read(w.scan, &w.snap), 0);
	assert_int_equal(scan_judge(w.scan), 0);
}

/* Only the aligned address is known to the program, and the first word leads to the next block of the page (T8). */
static void old_links_hold_nothing(void **state)
{
	taddr_t kept = page_block(0), lost = page_block(1), more = page_block(2), held = page_block(3);

	(void)state;
	put(GLOBALS, kept + ALIGNED);
	put(kept, lost);
	put(kept + 64, held);
	put(lost + 48, more);
	scan_of_books();
	assert_verdict(kept, SCAN_REACHABLE);
	assert_verdict(held, SCAN_REACHABLE);
	assert_verdict(lost, SCAN_DEFINITE);
	assert_verdict(more, SCAN_INDIRECT);
	assert_int_equal(scan_result(w.scan).nr_links, 1);
}

/* A chain of them, from the last block of a page to the first. */
static void chain_of_links(void **state)
{
	enum { NR = 40 };
	taddr_t kept[NR], lost[NR];

	(void)state;
	for (u32 i = 0; i < NR; i++) {
		kept[i] = page_block(2 * i);
		lost[i] = page_block(2 * i + 1);
		put(GLOBALS + 8 * i, kept[i] + ALIGNED);
		put(kept[i], lost[i]);
		if (i)
			put(lost[i], kept[i - 1]);
	}
	scan_of_books();
	for (u32 i = 0; i < NR; i++) {
		assert_verdict(kept[i], SCAN_REACHABLE);
		assert_verdict(lost[i], SCAN_DEFINITE);
	}
}

/* Lists of the program, whose first nodes have a pointer to the start; a header of another size; the middle. */
static void links_of_the_program(void **state)
{
	taddr_t list[4], with_header = page_block(10), header = block_at(HEAP + 0x3000, 40);
	taddr_t middle = page_block(12), behind = page_block(13);

	(void)state;
	for (u32 i = 0; i < 4; i++)
		list[i] = page_block(i);
	put(GLOBALS, list[3]);
	for (u32 i = 0; i < 4; i++) {
		put(GLOBALS + 64 + 8 * i, list[i] + ALIGNED);
		if (i)
			put(list[i], list[i - 1]);
	}
	put(GLOBALS + 128, with_header + ALIGNED);
	put(with_header, header);
	put(GLOBALS + 136, middle + 40);
	put(middle, behind);
	scan_of_books();
	for (u32 i = 0; i < 4; i++)
		assert_verdict(list[i], SCAN_REACHABLE);
	assert_verdict(header, SCAN_REACHABLE);
	assert_verdict(middle, SCAN_POSSIBLE);
	assert_verdict(behind, SCAN_POSSIBLE);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(old_links_hold_nothing),
		TEST(chain_of_links),
		TEST(links_of_the_program),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

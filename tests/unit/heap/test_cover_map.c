/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The bytes that blocks have covered, against a plain array of bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "user/heap/cover_map.h"

enum { SPAN = 5 << 20, BLOCKS = 4000 };

static const taddr_t base = 0x7f1200000000 - (2 << 20); /* across a border of pages */
static bool covered[SPAN];

static void random_blocks(void **state)
{
	struct budget budget = { 0 };
	struct cover_map map;
	unsigned int seed = 42;
	taddr_t at = base;

	(void)state;
	cover_map_init(&map, &budget);
	for (int i = 0; i < BLOCKS; i++) {
		size_t offset = (size_t)rand_r(&seed) % (SPAN - 300000) / 16 * 16;
		size_t size = (size_t)rand_r(&seed) % (i % 100 ? 300 : 300000);

		cover_map_add(&map, base + offset, size);
		for (size_t k = offset; k < offset + (size + 15) / 16 * 16; k++)
			covered[k] = true;
	}
	while (at < base + SPAN) {
		bool is_covered = false;
		taddr_t end = cover_map_run(&map, at, base + SPAN, &is_covered);

		assert_true(end > at);
		for (; at < end; at++)
			assert_int_equal(covered[at - base], is_covered);
	}
	assert_true(budget.used > 0);
	cover_map_fini(&map);
}

/* A granule in which a block ends is covered, because no other block begins there. One in which it begins is not. */
static void edges(void **state)
{
	struct budget budget = { 0 };
	struct cover_map map;
	bool is_covered = true;

	(void)state;
	cover_map_init(&map, &budget);
	assert_int_equal(cover_map_run(&map, 100, 5000, &is_covered), 5000);
	assert_false(is_covered);
	cover_map_add(&map, 0x1008, 20); /* from 0x1010 to 0x1020 */
	assert_int_equal(cover_map_run(&map, 0x1000, 0x2000, &is_covered), 0x1010);
	assert_false(is_covered);
	assert_int_equal(cover_map_run(&map, 0x1014, 0x2000, &is_covered), 0x1020);
	assert_true(is_covered);
	cover_map_add(&map, 0x1010, 0);
	assert_int_equal(cover_map_run(&map, 0x1020, 0x2000, &is_covered), 0x2000);
	assert_false(is_covered);
	cover_map_add(&map, UINT64_MAX - 10, 100);
	cover_map_fini(&map);
}

/* Without memory nothing is noted, and nothing breaks. */
static void limits(void **state)
{
	struct budget budget = { .limit = 20000 };
	struct cover_map map;
	bool is_covered;

	(void)state;
	cover_map_init(&map, &budget);
	for (taddr_t at = 0x100000; at < 0x10000000; at += 0x100000)
		cover_map_add(&map, at, 64);
	assert_true(budget.used <= 20000);
	assert_int_equal(cover_map_run(&map, 0x9000000, 0x9000040, &is_covered), 0x9000040);
	assert_false(is_covered);
	cover_map_fini(&map);
	budget = (struct budget){ 0 };
	cover_map_init(&map, &budget);
	for (taddr_t at = 0x100000; at < 0x800000000; at += 0x100000)
		cover_map_add(&map, at, 64);
	assert_true(budget.used < 70 << 20);
	cover_map_add(&map, 0x700000000000,
		      (u64)64 << 20); /* too large: such a block is a mapping of its own */
	cover_map_run(&map, 0x700000000000, 0x700000001000, &is_covered);
	assert_false(is_covered);
	cover_map_fini(&map);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_blocks),
		cmocka_unit_test(edges),
		cmocka_unit_test(limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

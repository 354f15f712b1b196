/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The blocks of two allocators become one list, by address, with the segments, arenas and types of both (T13). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "user/census/census_join.h"

enum { CLASS = 0x1000, OTHER = 0x2000, SIZE = 64 };

static void add_types(struct census_blocks *b, u64 word)
{
	b->types = calloc(NR_CENSUS_FIRST + 1, sizeof(*b->types));
	b->max_types = NR_CENSUS_FIRST + 1;
	for (u32 i = 0; i < NR_CENSUS_FIRST; i++)
		b->types[b->nr_types++] = (struct census_type){ .first = i };
	b->types[b->nr_types++] = (struct census_type){ .first = FIRST_FILE, .word = word };
}

/* A segment at @start with @nr blocks, of which every second one is of the type with a word. */
static void add_part(struct census_blocks *b, taddr_t start, u32 nr)
{
	const struct census_segment segment = { .start = start,
						.end = start + 0x1000,
						.arena = (u32)b->nr_arenas - 1,
						.first = b->nr,
						.nr = nr };

	for (u32 i = 0; i < nr; i++)
		assert_int_equal(
			census_add_block(b, start + (taddr_t)i * SIZE, SIZE, i % 2 ? NR_CENSUS_FIRST : 0), 0);
	assert_int_equal(census_add_segment(b, &segment), 0);
}

static void add_books(struct census_blocks *b, u64 word)
{
	const struct census_arena arena = { .system_bytes = 0x4000 };

	memset(b, 0, sizeof(*b));
	add_types(b, word);
	assert_int_equal(census_add_arena(b, &arena), 0);
}

/* All blocks are by address, and each segment has its own. */
static void check_order(const struct census_blocks *b)
{
	for (size_t i = 1; i < b->nr; i++)
		assert_true(b->blocks[i - 1].addr < b->blocks[i].addr);
	for (size_t i = 0; i < b->nr_segments; i++) {
		const struct census_segment *s = &b->segments[i];

		assert_true(!i || b->segments[i - 1].end <= s->start);
		for (size_t k = s->first; k < s->first + s->nr; k++)
			assert_true(b->blocks[k].addr >= s->start && b->blocks[k].addr < s->end);
	}
}

static void both_are_listed(void **state)
{
	struct census_blocks to, from;
	u64 nr_nested;

	(void)state;
	add_books(&to, CLASS);
	add_books(&from, OTHER);
	add_part(&to, 0x100000, 10);
	add_part(&to, 0x300000, 20);
	add_part(&from, 0x200000, 6);
	add_part(&from, 0x250000, 0);
	add_part(&from, 0x400000, 8);
	to.blocks[3].state = CENSUS_CACHED;
	from.blocks[1].may_begin_within = 1;
	from.may_begin_within = true;
	census_note(&from, 0, "one");
	assert_int_equal(census_count_live(&to).blocks, 29);
	assert_int_equal(census_join(&to, &from, &nr_nested), 0);
	assert_int_equal(nr_nested, 0);
	assert_null(from.blocks);
	assert_int_equal(to.nr, 44);
	assert_int_equal(to.nr_segments, 5);
	assert_int_equal(to.nr_notes, 1);
	assert_true(to.may_begin_within);
	check_order(&to);
	census_add_up(&to);
	assert_int_equal(census_live(&to).blocks, 43);
	assert_int_equal(to.nr_arenas, 2);
	assert_int_equal(to.arenas[0].of[CENSUS_LIVE].blocks, 29);
	assert_int_equal(to.arenas[1].of[CENSUS_LIVE].bytes, 14 * SIZE);
	assert_int_equal(to.nr_types, NR_CENSUS_FIRST + 2);
	assert_int_equal(to.types[NR_CENSUS_FIRST].live.blocks, 14);
	assert_int_equal(to.types[NR_CENSUS_FIRST + 1].word, OTHER);
	assert_int_equal(to.types[NR_CENSUS_FIRST + 1].live.blocks, 7);
	assert_true(census_find(&to, 0x200000 + SIZE)->may_begin_within);
	census_blocks_fini(&to);
}

/* Memory that one allocator got from the other: the blocks in it are parts of a block, and are not counted twice. */
static void nested_memory_counts_once(void **state)
{
	struct census_blocks to, from;
	u64 nr_nested;

	(void)state;
	add_books(&to, CLASS);
	add_books(&from, CLASS);
	add_part(&to, 0x100000, 10);
	add_part(&from, 0x0ff800, 4);
	add_part(&from, 0x200000, 6);
	assert_int_equal(census_join(&to, &from, &nr_nested), 0);
	assert_int_equal(nr_nested, 4);
	assert_int_equal(to.nr, 16);
	assert_int_equal(to.nr_segments, 2);
	check_order(&to);
	census_add_up(&to);
	assert_int_equal(census_live(&to).blocks, 16);
	assert_int_equal(to.nr_types, NR_CENSUS_FIRST + 1);
	assert_int_equal(to.types[NR_CENSUS_FIRST].live.blocks, 8);
	census_blocks_fini(&to);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_are_listed),
		cmocka_unit_test(nested_memory_counts_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

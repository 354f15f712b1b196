/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Verdicts on blocks without headers between them, where the end of one block is the start of the next. */
#include "tests/unit/scan_checks.h"

enum { SIZE = 64, NR_PAIRS = 20 };

/* Block number @n of a row of blocks that touch. */
static taddr_t in_row(u32 n)
{
	return block_at(HEAP + 0x1000 + SIZE * n, SIZE);
}

/* Put the @nr @words at @at; returns where the next ones may be. */
static taddr_t put_words(taddr_t at, const u64 *words, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		put(at + 8 * i, words[i]);
	return at + 8 * nr;
}

/* Begin and end, and a position in the container: its neighbour is lost (T8). */
static void ends_hold_nothing(void **state)
{
	const struct {
		u64 words[4]; /* 0 to SIZE: from the begin of the container */
		bool is_queue;
	} shapes[] = {
		{ { 0, SIZE, SIZE } },		      /* a full vector */
		{ { 0, 16, SIZE } },		      /* one with room */
		{ { 0, SIZE, 8 } },		      /* a buffer: base, end, next */
		{ { 0, SIZE, 0 } },		      /* an empty one */
		{ { 24, 0, SIZE } },		      /* a position in a queue */
		{ { 8, SIZE, 0 } },		      /* a stream: position, end, base */
		{ { 0, 8, 24, SIZE } },		      /* an arena: base, object, position, end */
		{ { 0, 0, SIZE }, .is_queue = true }, /* its first position, and its last one */
	};
	taddr_t at = GLOBALS, kept[ARRAY_SIZE(shapes)], lost[ARRAY_SIZE(shapes)];

	(void)state;
	for (u32 i = 0; i < ARRAY_SIZE(shapes); i++) {
		kept[i] = in_row(3 * i);
		lost[i] = in_row(3 * i + 1);
		for (int k = 0; k < 3 + !!shapes[i].words[3]; k++)
			put(at + 8 * k, kept[i] + shapes[i].words[k]);
		if (shapes[i].is_queue)
			put_words(at + 32, (u64[]){ kept[i] + 16, kept[i], lost[i] }, 3);
		at += 64;
	}
	scan_all();
	for (u32 i = 0; i < ARRAY_SIZE(shapes); i++) {
		assert_verdict(kept[i], SCAN_REACHABLE);
		assert_verdict(lost[i], SCAN_DEFINITE);
	}
}

/* Vectors side by side, whose blocks lie side by side too: the ends of two before a begin are no third vector (T8). */
static void table_of_vectors(void **state)
{
	taddr_t at = GLOBALS, kept[NR_PAIRS], lost[NR_PAIRS];

	(void)state;
	for (u32 i = 0; i < NR_PAIRS; i++) {
		kept[i] = in_row(2 * i);
		lost[i] = in_row(2 * i + 1);
		at = put_words(at, (u64[]){ kept[i], lost[i], lost[i] }, 3);
	}
	scan_all();
	for (u32 i = 0; i < NR_PAIRS; i++) {
		assert_verdict(kept[i], SCAN_REACHABLE);
		assert_verdict(lost[i], SCAN_DEFINITE);
	}
}

/* Ends in a block, too; and words of the block beside it are not those of the container (T8). */
static void ends_in_blocks(void **state)
{
	taddr_t owner = block_at(HEAP + 0x100, 24), many = block(0x80), other = block_at(HEAP + 0x118, 8),
		kept = in_row(0);
	taddr_t lost = in_row(1), held = in_row(2), before = in_row(3), alone = in_row(4);

	(void)state;
	put_words(owner, (u64[]){ kept, lost, lost }, 3);
	put(GLOBALS, owner);
	put(GLOBALS + 64, other);
	put_words(GLOBALS + 128, (u64[]){ held, 1, before }, 3);
	put(other, alone);
	scan_all();
	assert_verdict(kept, SCAN_REACHABLE);
	assert_verdict(lost, SCAN_DEFINITE);
	assert_verdict(held, SCAN_REACHABLE);
	assert_verdict(before, SCAN_REACHABLE);
	assert_verdict(alone, SCAN_REACHABLE);
	assert_verdict(many, SCAN_DEFINITE);
}

/* Pointers to blocks in a row, upwards and downwards, hold them all, in globals and in a block (T8). */
static void table_of_pointers(void **state)
{
	taddr_t table = block_at(HEAP + 0x100, 8 * NR_PAIRS), blocks[3 * NR_PAIRS];

	(void)state;
	put(GLOBALS, table);
	for (u32 i = 0; i < ARRAY_SIZE(blocks); i++)
		blocks[i] = in_row(i);
	for (u32 i = 0; i < NR_PAIRS; i++) {
		put(table + 8 * i, blocks[i]);
		put(GLOBALS + 64 + 8 * i, blocks[NR_PAIRS + i]);
		put(GLOBALS + 256 + 8 * i, blocks[3 * NR_PAIRS - 1 - i]);
	}
	w.blocks[0].row = 1;
	for (u32 i = 0; i < ARRAY_SIZE(blocks); i++)
		w.blocks[1 + i].row = 0;
	scan_with_callers();
	for (u32 i = 0; i < ARRAY_SIZE(blocks); i++)
		assert_verdict(blocks[i], SCAN_REACHABLE);
}

/* Blocks of two callers in turn, as pairs or as begins and ends: those of the second caller may be lost (T8). */
static void pairs_in_turn(void **state)
{
	taddr_t blocks[2 * NR_PAIRS];

	(void)state;
	for (u32 i = 0; i < ARRAY_SIZE(blocks); i++) {
		blocks[i] = in_row(i);
		w.blocks[w.nr_blocks - 1].row = i % 2;
		put(GLOBALS + 8 * i, blocks[i]);
	}
	scan_with_callers();
	for (u32 i = 0; i < ARRAY_SIZE(blocks); i++)
		assert_verdict(blocks[i], i % 2 ? SCAN_POSSIBLE : SCAN_REACHABLE);
}

/* Begin and end alone look as two pointers: possible where no block of the caller has another one (T8). */
static void pairs(void **state)
{
	taddr_t kept[NR_PAIRS], next[NR_PAIRS], other;

	(void)state;
	for (u32 i = 0; i < NR_PAIRS; i++) {
		kept[i] = in_row(2 * i);
		w.blocks[w.nr_blocks - 1].row = 0;
		next[i] = in_row(2 * i + 1);
		w.blocks[w.nr_blocks - 1].row = 1;
		put_words(GLOBALS + 64 * i, (u64[]){ kept[i], i % 2 ? 5 : next[i], i % 2 ? next[i] : 0 }, 3);
	}
	scan_with_callers();
	for (u32 i = 0; i < NR_PAIRS; i++) {
		assert_verdict(kept[i], SCAN_REACHABLE);
		assert_verdict(next[i], SCAN_POSSIBLE);
	}
	scan_free(w.scan);
	w.next = 0;
	for (u32 i = 0; i < 2; i++) {
		other = block_at(HEAP + 0x100 * (i + 1), SIZE);
		w.blocks[w.nr_blocks - 1].row = 1;
		put(GLOBALS + 64 * (NR_PAIRS + i), other);
	}
	scan_with_callers();
	for (u32 i = 0; i < NR_PAIRS; i++)
		assert_verdict(next[i], SCAN_REACHABLE);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(ends_hold_nothing), TEST(table_of_vectors), TEST(ends_in_blocks),
		TEST(table_of_pointers), TEST(pairs_in_turn),	 TEST(pairs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

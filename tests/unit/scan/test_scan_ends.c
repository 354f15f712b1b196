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

/* A block of @nr words that a root leads to, number @n. */
static taddr_t owner_of(u32 n, size_t nr)
{
	taddr_t owner = block_at(HEAP + 0x8000 + (u64)n * 0x800, 8 * nr);

	put(GLOBALS + 0x1000 + 8 * (u64)n, owner);
	return owner;
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
		{ { 24, 0, SIZE } },		      /* a position in a queue */
		{ { 8, SIZE, 0 } },		      /* a stream: position, end, base */
		{ { 0, 8, 24, SIZE } },		      /* an arena: base, object, position, end */
		{ { 0, 8, -1, SIZE } },		      /* an iterator: base, position, count, end */
		{ { 0, 0, SIZE }, .is_queue = true }, /* its first position, and its last one */
	};
	taddr_t kept[ARRAY_SIZE(shapes)], lost[ARRAY_SIZE(shapes)];

	(void)state;
	for (u32 i = 0; i < ARRAY_SIZE(shapes); i++) {
		u64 nr = shapes[i].is_queue ? 7 : shapes[i].words[3] ? 4 : 3;
		taddr_t at = owner_of(i, nr);

		kept[i] = in_row(3 * i);
		lost[i] = in_row(3 * i + 1);
		for (u64 k = 0; k < nr && k < 4; k++)
			put(at + 8 * k, shapes[i].words[k] == -1ULL ? 5 : kept[i] + shapes[i].words[k]);
		if (shapes[i].is_queue)
			put_words(at + 24, (u64[]){ 0, kept[i] + 16, kept[i], lost[i] }, 4);
	}
	scan_all();
	for (u32 i = 0; i < ARRAY_SIZE(shapes); i++) {
		assert_verdict(kept[i], SCAN_REACHABLE);
		assert_verdict(lost[i], SCAN_DEFINITE);
	}
}

/* Keys, hashes, and the keys once more as values: two blocks of a GHashTable that lie side by side (T8). */
static void begin_end_begin(void **state)
{
	taddr_t keys[NR_PAIRS], hashes[NR_PAIRS];

	(void)state;
	for (u32 i = 0; i < NR_PAIRS; i++) {
		keys[i] = in_row(2 * i);
		w.blocks[w.nr_blocks - 1].row = 0;
		hashes[i] = in_row(2 * i + 1);
		w.blocks[w.nr_blocks - 1].row = 1;
		put_words(owner_of(i, 5), (u64[]){ 8, keys[i], hashes[i], keys[i], TEXT }, 5);
	}
	scan_all();
	for (u32 i = 0; i < NR_PAIRS; i++)
		assert_verdict(hashes[i], SCAN_REACHABLE);
	scan_free(w.scan);
	w.next = 0;
	scan_with_callers();
	for (u32 i = 0; i < NR_PAIRS; i++)
		assert_verdict(hashes[i], SCAN_POSSIBLE);
}

/* Vectors side by side, whose blocks lie side by side too: the ends of two before a begin are no third vector (T8). */
static void table_of_vectors(void **state)
{
	taddr_t at = owner_of(0, 3 * NR_PAIRS), kept[NR_PAIRS], lost[NR_PAIRS];

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

/*
 * Arrays that look as containers, of blocks in a row: entries with data and a position, which some do not have; edges
 * of a graph, from the node before to the next one; first and last of lists. Nothing is lost (T8).
 */
static void arrays_of_pairs(void **state)
{
	taddr_t blocks[3 * NR_PAIRS], at = GLOBALS;

	(void)state;
	for (u32 i = 0; i < ARRAY_SIZE(blocks); i++)
		blocks[i] = in_row(i);
	for (u32 i = 0; i < NR_PAIRS; i++)
		at = put_words(at, (u64[]){ blocks[i], i % 5 ? blocks[i] + 8 * (i % 8) : 0 }, 2);
	for (u32 i = NR_PAIRS; i < 2 * NR_PAIRS - 1; i++)
		at = put_words(at, (u64[]){ blocks[i], blocks[i + 1] }, 2);
	for (u32 i = 2 * NR_PAIRS; i < 3 * NR_PAIRS; i++)
		at = put_words(at, (u64[]){ blocks[i], blocks[i], blocks[i], blocks[i] + 8 }, 4);
	scan_all();
	for (u32 i = 0; i < ARRAY_SIZE(blocks); i++)
		assert_verdict(blocks[i], SCAN_REACHABLE);
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

/* Begin and end, most of which lie where no block can begin. @other: one block of the caller is held alone. */
static void spans_with_proof(bool other)
{
	taddr_t kept[NR_PAIRS], next[NR_PAIRS];

	for (u32 i = 0; i < NR_PAIRS; i++) {
		u64 size = i % 4 ? SIZE - i : SIZE;

		kept[i] = block_at(HEAP + 0x1000 + 2ULL * SIZE * i, size);
		w.blocks[w.nr_blocks - 1].row = 0;
		next[i] = in_row(2 * i + 1);
		w.blocks[w.nr_blocks - 1].row = 1;
		put_words(GLOBALS + 64ULL * i, (u64[]){ kept[i], kept[i] + size }, 2);
	}
	if (other) {
		put(GLOBALS + 64ULL * NR_PAIRS, block_at(HEAP + 0x100, SIZE));
		w.blocks[w.nr_blocks - 1].row = 0;
	}
	scan_with_callers();
	for (u32 i = 0; i < NR_PAIRS; i++) {
		assert_verdict(kept[i], SCAN_REACHABLE);
		assert_verdict(next[i], i % 4 || !other ? SCAN_DEFINITE : SCAN_POSSIBLE);
	}
}

/* Where all blocks of a caller are held so, the neighbours are lost (T8). */
static void all_spans(void **state)
{
	(void)state;
	spans_with_proof(false);
}

/* Where only nearly all are, they may be lost (T8). */
static void nearly_all_spans(void **state)
{
	(void)state;
	spans_with_proof(true);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(ends_hold_nothing),
		TEST(begin_end_begin),
		TEST(table_of_vectors),
		TEST(ends_in_blocks),
		TEST(table_of_pointers),
		TEST(pairs_in_turn),
		TEST(pairs),
		TEST(arrays_of_pairs),
		TEST(all_spans),
		TEST(nearly_all_spans),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

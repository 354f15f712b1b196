/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Verdicts on blocks that a program keeps by pointers behind a header, and by pointers with marks in their bits. */
#include "tests/unit/scan_checks.h"

enum { NR = 24, NR_LOST = 3 };

/* Make NR blocks, and a pointer @offset bytes into each, at @at. */
static void keep_behind(taddr_t to[NR], taddr_t at, u64 offset)
{
	for (u32 i = 0; i < NR; i++) {
		to[i] = block((u32)w.nr_blocks);
		put(at + 8 * i, to[i] + offset);
	}
}

/* All pointers to the blocks of a size lead to one offset: they hold them. A block without a pointer is lost. */
static void one_header(void **state)
{
	taddr_t kept[NR], lost[NR_LOST];
	struct scan_result r;

	(void)state;
	keep_behind(kept, GLOBALS, 16);
	for (u32 i = 0; i < NR_LOST; i++)
		lost[i] = block((u32)w.nr_blocks);
	scan_with_callers();
	for (u32 i = 0; i < NR; i++)
		assert_verdict(kept[i], SCAN_REACHABLE);
	for (u32 i = 0; i < NR_LOST; i++)
		assert_verdict(lost[i], SCAN_DEFINITE);
	r = scan_result(w.scan);
	assert_int_equal(r.behind.blocks, NR);
	assert_int_equal(r.behind.bytes, NR * 64);
	assert_int_equal(r.headers[0], 16);
	assert_int_equal(r.headers[1], 0);
}

/* The switch of the benchmark: blocks behind headers are possible, as without callers. */
static void without_rules(void **state)
{
	taddr_t kept[NR];

	(void)state;
	keep_behind(kept, GLOBALS, 16);
	w.options.no_heuristics = SCAN_RULES;
	scan_with_callers();
	for (u32 i = 0; i < NR; i++)
		assert_verdict(kept[i], SCAN_POSSIBLE);
}

/* Blocks behind headers hold others so, and those hold more by their starts. */
static void chains_behind_headers(void **state)
{
	taddr_t kept[NR], inner[NR], last[NR];

	(void)state;
	keep_behind(kept, GLOBALS, 8);
	for (u32 i = 0; i < NR; i++) {
		inner[i] = block((u32)w.nr_blocks);
		last[i] = block((u32)w.nr_blocks);
		put(kept[i] + 16, inner[i] + 8);
		put(inner[i] + 24, last[i]);
	}
	scan_with_callers();
	for (u32 i = 0; i < NR; i++) {
		assert_verdict(kept[i], SCAN_REACHABLE);
		assert_verdict(inner[i], SCAN_REACHABLE);
		assert_verdict(last[i], SCAN_REACHABLE);
	}
	assert_int_equal(scan_result(w.scan).behind.blocks, 2 * NR);
}

/*
 * Beside blocks behind headers some are held elsewhere in their middle. These stay possible, and what only they lead
 * to; the blocks behind headers that only these hold become reachable no more than they do.
 */
static void headers_beside_others(void **state)
{
	taddr_t kept[NR], other = block_at(HEAP + 0x8000, 256), inner = block_at(HEAP + 0x8200, 64),
			  last = block_at(HEAP + 0x8300, 96);

	(void)state;
	keep_behind(kept, GLOBALS, 8);
	put(GLOBALS + 8 * NR, other + 100);
	put(other + 16, inner + 8);
	put(inner + 24, last);
	scan_with_callers();
	for (u32 i = 0; i < NR; i++)
		assert_verdict(kept[i], SCAN_REACHABLE);
	assert_verdict(other, SCAN_POSSIBLE);
	assert_verdict(inner, SCAN_POSSIBLE);
	assert_verdict(last, SCAN_POSSIBLE);
	assert_int_equal(scan_result(w.scan).behind.blocks, NR);
}

/* Two headers, as of strings of different lengths, the frequent one first; blocks of another size beside them. */
static void two_headers(void **state)
{
	taddr_t kept[NR], others[NR], plain = block_at(HEAP + 0x10, 32);
	struct scan_result r;

	(void)state;
	put(GLOBALS, plain);
	keep_behind(kept, GLOBALS + 8, 1);
	keep_behind(others, GLOBALS + 8 + 8 * NR, 3);
	put(GLOBALS + 16 + 16 * NR, block((u32)w.nr_blocks) + 3);
	scan_with_callers();
	r = scan_result(w.scan);
	assert_int_equal(r.behind.blocks, 2 * NR + 1);
	assert_int_equal(r.headers[0], 3);
	assert_int_equal(r.headers[1], 1);
	assert_int_equal(r.sums.of[SCAN_POSSIBLE].blocks, 0);
}

/*
 * Blocks of two sizes are kept behind a header of 16 bytes. A header alone is kept by the pointer to its end, and for a
 * block that touches another one that pointer may mean the other. Without any pointer to the end, or with one from a
 * lost block only, it is lost (T8).
 */
static void headers_alone(void **state)
{
	taddr_t kept[NR], others[NR], alone[NR],
		plain = block_at(HEAP + 0xa500, 48), held = block_at(HEAP + 0xa600, 16),
		lost = block_at(HEAP + 0xa000, 16), holder = block_at(HEAP + 0xa100, 48),
		led = block_at(HEAP + 0xa200, 16), first = block_at(HEAP + 0xa300, 16),
		second = block_at(HEAP + 0xa310, 48), third = block_at(HEAP + 0xa400, 16),
		fourth = block_at(HEAP + 0xa410, 48);

	(void)state;
	for (u32 i = 0; i < NR; i++) {
		kept[i] = block_at(HEAP + 0x8000 + 0x100 * (u64)i, 64);
		others[i] = block_at(HEAP + 0x8060 + 0x100 * (u64)i, 96);
		alone[i] = block_at(HEAP + 0xb000 + 0x100 * (u64)i, 16);
		put(GLOBALS + 24 * i, kept[i] + 16);
		put(GLOBALS + 24 * i + 8, others[i] + 16);
		put(i % 2 ? GLOBALS + 24 * i + 16 : kept[i] + 32, alone[i] + 16);
	}
	put(holder, led + 16);
	put(GLOBALS + 0x1008, plain);
	put(plain + 8, held + 16);
	put(GLOBALS + 0x1000, second);
	scan_with_callers();
	for (u32 i = 0; i < NR; i++) {
		assert_verdict(kept[i], SCAN_REACHABLE);
		assert_verdict(alone[i], SCAN_REACHABLE);
	}
	assert_verdict(held, SCAN_REACHABLE);
	assert_verdict(lost, SCAN_DEFINITE);
	assert_verdict(holder, SCAN_DEFINITE);
	assert_verdict(led, SCAN_INDIRECT);
	assert_verdict(first, SCAN_POSSIBLE);
	assert_verdict(second, SCAN_REACHABLE);
	assert_verdict(third, SCAN_DEFINITE);
	assert_verdict(fourth, SCAN_DEFINITE);
	assert_int_equal(scan_result(w.scan).behind.blocks, 3 * NR + 1);
}

/* Where no caller has such a header, pointers to ends hold nothing. */
static void ends_without_headers(void **state)
{
	taddr_t alone[NR];

	(void)state;
	for (u32 i = 0; i < NR; i++) {
		alone[i] = block_at(HEAP + 0xb000 + 0x100 * (u64)i, 16);
		put(GLOBALS + 8 * i, alone[i] + 16);
	}
	scan_with_callers();
	for (u32 i = 0; i < NR; i++)
		assert_verdict(alone[i], SCAN_DEFINITE);
}

/* Pointers that lead anywhere are old ones; and few blocks say nothing. */
static void no_header(void **state)
{
	taddr_t kept[NR];

	(void)state;
	for (u32 i = 0; i < NR; i++) {
		kept[i] = block((u32)w.nr_blocks);
		put(GLOBALS + 8 * i, kept[i] + 1 + i * 2);
	}
	scan_with_callers();
	for (u32 i = 0; i < NR; i++)
		assert_verdict(kept[i], SCAN_POSSIBLE);
	scan_free(w.scan);
	w.next = 0;
	w.nr_blocks = NR / 2;
	for (u32 i = 0; i < NR / 2; i++)
		put(GLOBALS + 8 * i, kept[i] + 16);
	scan_with_callers();
	for (u32 i = 0; i < NR / 2; i++)
		assert_verdict(kept[i], SCAN_POSSIBLE);
}

/*
 * Make NR owners of 48 bytes, held by @at. Each has a pointer @step * (1 + its number modulo 7) bytes into a table,
 * which holds one more block by its start.
 */
static void keep_tables(taddr_t tables[NR], taddr_t items[NR], taddr_t at, u64 step)
{
	for (u32 i = 0; i < NR; i++) {
		taddr_t owner = block_at(HEAP + 0x8000 + 64 * i, 48);

		tables[i] = block((u32)w.nr_blocks);
		items[i] = block((u32)w.nr_blocks);
		put(at + 8 * i, owner);
		put(owner + 16, tables[i] + step * (1 + i % 7));
		put(tables[i] + 56, items[i]);
	}
}

/*
 * Headers of many lengths, which the owners know. A block without a pointer stays lost, and one to whose middle only a
 * global leads possible.
 */
static void headers_of_owners(void **state)
{
	taddr_t tables[NR], items[NR], lost, other;
	struct scan_result r;

	(void)state;
	keep_tables(tables, items, GLOBALS, 8);
	lost = block((u32)w.nr_blocks);
	other = block((u32)w.nr_blocks);
	put(GLOBALS + 8 * NR, other + 24);
	scan_with_callers();
	for (u32 i = 0; i < NR; i++) {
		assert_verdict(tables[i], SCAN_REACHABLE);
		assert_verdict(items[i], SCAN_REACHABLE);
	}
	assert_verdict(lost, SCAN_DEFINITE);
	assert_verdict(other, SCAN_POSSIBLE);
	r = scan_result(w.scan);
	assert_int_equal(r.behind.blocks, NR);
	assert_int_equal(r.headers[0], 0);
}

/* Tables are no more reachable than their owners are. */
static void headers_of_lost_owners(void **state)
{
	taddr_t tables[NR], items[NR];

	(void)state;
	keep_tables(tables, items, GLOBALS, 8);
	put(GLOBALS, 0);
	put(GLOBALS + 8, HEAP + 0x8000 + 64 + 24);
	scan_with_callers();
	assert_verdict(tables[0], SCAN_INDIRECT);
	assert_verdict(items[1], SCAN_POSSIBLE);
	assert_verdict(items[2], SCAN_REACHABLE);
}

/* Where a good part of the owners have pointers to starts, others may be old. */
static void owners_without_habit(void **state)
{
	taddr_t tables[NR], items[NR];

	(void)state;
	keep_tables(tables, items, GLOBALS, 8);
	for (u32 i = 0; i < NR; i += 4)
		put(HEAP + 0x8000 + 64 * i + 16, tables[i]);
	scan_with_callers();
	assert_verdict(tables[0], SCAN_REACHABLE);
	assert_verdict(tables[1], SCAN_POSSIBLE);
	assert_verdict(items[1], SCAN_POSSIBLE);
}

/* When events were lost, free chunks of glibc lead into the last words of the blocks before them. */
static void free_chunks_are_no_header(void **state)
{
	taddr_t kept[NR], before[NR];

	(void)state;
	w.options.is_partial = true;
	keep_behind(kept, GLOBALS, 16);
	for (u32 i = 0; i < NR; i++) {
		before[i] = block_at(HEAP + 0x8000 + 64 * i, 56);
		put(GLOBALS + 8 * (NR + i), before[i] + 48);
	}
	scan_with_callers();
	for (u32 i = 0; i < NR; i++) {
		assert_verdict(kept[i], SCAN_REACHABLE);
		assert_verdict(before[i], SCAN_POSSIBLE);
	}
	scan_free(w.scan);
	w.next = 0;
	w.options.is_partial = false;
	scan_with_callers();
	for (u32 i = 0; i < NR; i++)
		assert_verdict(before[i], SCAN_REACHABLE);
}

/* A word with a counter above 48 bits holds nothing, but the scan says that such words lead to the lost blocks. */
static void marked_pointers(void **state)
{
	taddr_t first = block(1), second = block(2), job = block(3), lost = block(4);
	struct scan_result r;

	(void)state;
	put(GLOBALS, 0x0007000000000000ULL | first);
	put(first, 0x1234000000000000ULL | second);
	put(second + 8, job);
	scan_all();
	assert_verdict(first, SCAN_DEFINITE);
	assert_verdict(lost, SCAN_DEFINITE);
	r = scan_result(w.scan);
	assert_int_equal(r.tagged.blocks, 3);
	assert_int_equal(r.tagged.bytes, 3 * 64);
	assert_true(r.tag_mask == 0x0000ffffffffffffULL);
	scan_free(w.scan);
	w.next = 0;
	put(GLOBALS, 0x0007000000000000ULL | first | 3);
	scan_all();
	assert_true(scan_result(w.scan).tag_mask == 0x0000fffffffffff8ULL);
	scan_free(w.scan);
	w.next = 0;
	w.options.pointer_mask = 0x0000fffffffffff8ULL;
	scan_all();
	assert_verdict(job, SCAN_REACHABLE);
	assert_int_equal(scan_result(w.scan).tagged.blocks, 0);
}

/* One such word among many lost blocks is chance. */
static void marks_by_chance(void **state)
{
	(void)state;
	for (u32 i = 0; i < NR; i++)
		block(i);
	put(GLOBALS, 0x0007000000000000ULL | w.blocks[0].addr);
	scan_all();
	assert_int_equal(scan_result(w.scan).tagged.blocks, 0);
}

/*
 * An object that was aligned by hand keeps where its block begins, another one where it begins itself. A list that is
 * empty leads to its own head, and pointers to an object far behind say nothing about its block.
 */
static void objects_that_know_themselves(void **state)
{
	taddr_t aligned = block_at(HEAP + 0x8010, 256), behind = block_at(HEAP + 0x8200, 256),
		list = block_at(HEAP + 0x8400, 256), far = block_at(HEAP + 0x8600, 256), held = block(0),
		only_list = block(1), alone = block_at(HEAP + 0x8800, 256);

	(void)state;
	put(GLOBALS, aligned + 48);
	put(aligned + 96, aligned);
	put(aligned + 104, held);
	put(GLOBALS + 8, behind + 8);
	put(behind + 88, behind + 8);
	put(GLOBALS + 16, list + 16);
	put(list + 16, list + 16);
	put(list + 24, list + 16);
	put(list + 32, only_list);
	put(GLOBALS + 24, far + 128);
	put(far + 200, far);
	put(alone + 96, alone);
	scan_all();
	assert_verdict(aligned, SCAN_REACHABLE);
	assert_verdict(held, SCAN_REACHABLE);
	assert_verdict(behind, SCAN_REACHABLE);
	assert_verdict(list, SCAN_POSSIBLE);
	assert_verdict(only_list, SCAN_POSSIBLE);
	assert_verdict(far, SCAN_POSSIBLE);
	assert_verdict(alone, SCAN_DEFINITE);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(one_header),
		TEST(without_rules),
		TEST(chains_behind_headers),
		TEST(headers_beside_others),
		TEST(two_headers),
		TEST(headers_alone),
		TEST(ends_without_headers),
		TEST(no_header),
		TEST(headers_of_owners),
		TEST(headers_of_lost_owners),
		TEST(owners_without_habit),
		TEST(objects_that_know_themselves),
		TEST(marked_pointers),
		TEST(marks_by_chance),
		TEST(free_chunks_are_no_header),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

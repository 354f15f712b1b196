/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Scans while events come in, with impossible blocks, of many blocks, and of random graphs checked by brute force. */
#include "tests/unit/scan_checks.h"

static void drain(u8 kind, taddr_t addr, taddr_t old_addr, u64 size)
{
	struct heap_event ev = { .h.kind = kind, .addr = addr, .old_addr = old_addr, .size = size };

	assert_int_equal(scan_event(w.scan, &ev), 0);
}

static void unmap(taddr_t addr, u64 size)
{
	struct heap_event ev = { .h = { .kind = EVENT_FREE, .flags = EVENT_UNMAP },
				 .addr = addr,
				 .size = size };

	assert_int_equal(scan_event(w.scan, &ev), 0);
}

/* Events between scan_new() and the stop. */
static void drained_events(void **state)
{
	taddr_t freed = block(0), moved = block(1), flight = block(2), failed = block(3), again = block(4);
	taddr_t fresh = HEAP + 0x5000, target = HEAP + 0x5100, held = block(6), lost = block(7);
	taddr_t copied = block(8);

	(void)state;
	assert_int_equal(scan_new(&w.scan, &books, &w.options), 0);
	drain(EVENT_FREE, freed, 0, 0);
	drain(EVENT_REALLOC_BEGIN, 0, moved, 0);
	drain(EVENT_REALLOC_END, target, moved, 128);
	drain(EVENT_REALLOC_BEGIN, 0, flight, 0);
	drain(EVENT_REALLOC_BEGIN, 0, failed, 0);
	drain(EVENT_REALLOC_END, 0, failed, 0);
	drain(EVENT_FREE, again, 0, 0);
	drain(EVENT_ALLOC, again, 0, 32);
	drain(EVENT_ALLOC, fresh, 0, 64);
	drain(EVENT_ALLOC, HEAP + 0x6000, 0, 64);
	drain(EVENT_FREE, HEAP + 0x6000, 0, 0);
	put(GLOBALS, flight);
	put(flight, held);
	put(HEAP + 0x7000, copied); /* a realloc has not returned: the copy may hold the pointer */
	assert_int_equal(scan_read(w.scan, &w.snap), 0);
	assert_int_equal(scan_judge(w.scan), 0);
	assert_false(scan_find(w.scan, freed, &(struct scan_block_info){ 0 }));
	assert_false(scan_find(w.scan, moved, &(struct scan_block_info){ 0 }));
	assert_false(scan_find(w.scan, HEAP + 0x6000, &(struct scan_block_info){ 0 }));
	assert_verdict(target, SCAN_UNSURE);
	assert_verdict(fresh, SCAN_UNSURE);
	assert_verdict(failed, SCAN_UNSURE);
	assert_verdict(again, SCAN_UNSURE);
	assert_int_equal(info_of(again).size, 32);
	assert_verdict(flight, SCAN_REACHABLE);
	assert_verdict(held, SCAN_REACHABLE);
	assert_verdict(copied, SCAN_REACHABLE);
	assert_verdict(lost, SCAN_DEFINITE);
}

static int each_own(const void *ctx, int (*visit)(void *, taddr_t, taddr_t), void *visit_ctx)
{
	(void)ctx;
	return visit(visit_ctx, HEAP, HEAP + 0x4000);
}

/* Where another allocator has blocks that are not known, only the memory of the known one holds nothing. */
static void others_blocks(void **state)
{
	const struct scan_books of_one = { .for_each = each_block, .for_each_own = each_own };
	taddr_t lost = block(0), held = block(1);

	(void)state;
	w.options.has_others = true;
	put(HEAP + 0x3000, lost);
	put(HEAP + 0x5000, held);
	assert_int_equal(scan_new(&w.scan, &of_one, &w.options), 0);
	assert_int_equal(scan_read(w.scan, &w.snap), 0);
	assert_int_equal(scan_judge(w.scan), 0);
	assert_verdict(lost, SCAN_DEFINITE);
	assert_verdict(held, SCAN_REACHABLE);
}

/* Mappings that are made, cut and unmapped between scan_new() and the stop: what is left of them has a verdict. */
static void drained_unmaps(void **state)
{
	const taddr_t old = HEAP + 0x100000, cut = HEAP + 0x200000, held = HEAP + 0x300000,
		      young = HEAP + 0x400000;
	const u64 size = 0x10000;

	(void)state;
	block_at(old, size);
	block_at(cut, size);
	block_at(held, size);
	assert_int_equal(scan_new(&w.scan, &books, &w.options), 0);
	unmap(old, size);
	unmap(cut, 0x1000);
	unmap(cut + size - 0x1000, 0xfff); /* rounded up */
	drain(EVENT_ALLOC, young, 0, 2 * size);
	unmap(young, 0x3000);
	unmap(young + 0x8000, 2 * size - 0x8000);
	drain(EVENT_ALLOC, young + 0x8000, 0, 0x1000);
	drain(EVENT_ALLOC, young + size, 0, size);
	unmap(young + size, size);
	drain(EVENT_ALLOC, old, 0, 0x2000);
	put(GLOBALS, held);
	put(GLOBALS + 8, young + 0x3000);
	put(GLOBALS + 16, old);
	assert_int_equal(scan_read(w.scan, &w.snap), 0);
	assert_int_equal(scan_judge(w.scan), 0);
	assert_verdict(held, SCAN_REACHABLE);
	assert_verdict(cut + 0x1000, SCAN_DEFINITE);
	assert_int_equal(info_of(cut + 0x1000).size, size - 0x2000);
	assert_verdict(young + 0x3000, SCAN_REACHABLE);
	assert_int_equal(info_of(young + 0x3000).size, 0x5000);
	assert_verdict(young + 0x8000, SCAN_UNSURE);
	assert_verdict(old, SCAN_REACHABLE);
	assert_int_equal(info_of(old).size, 0x2000);
	assert_false(scan_find(w.scan, cut, &(struct scan_block_info){ 0 }));
	assert_false(scan_find(w.scan, young, &(struct scan_block_info){ 0 }));
	assert_false(scan_find(w.scan, young + size, &(struct scan_block_info){ 0 }));
}

static int nr_asked, asked_at;

static bool is_unwanted_now(void)
{
	return ++nr_asked == asked_at;
}

/* A scan can be broken off at each place where it asks, in both halves. */
static void broken_off(void **state)
{
	int nr_new = 0, nr_read = 0, nr_judge = 0, err = -ECANCELED;
	taddr_t held = block(0);

	(void)state;
	for (unsigned int i = 1; i < 9; i++)
		block(i);
	put(GLOBALS, held);
	w.options.is_unwanted = is_unwanted_now;
	for (asked_at = 1; err; asked_at++) {
		nr_asked = 0;
		w.next = w.piece = 0; /* the memory is read from its begin */
		err = scan_new(&w.scan, &books, &w.options);
		nr_new += err != 0;
		assert_true(!err || err == -ECANCELED);
		if (err)
			continue;
		err = scan_read(w.scan, &w.snap);
		nr_read += err != 0;
		if (!err) {
			err = scan_judge(w.scan);
			nr_judge += err != 0;
		}
		assert_true(!err || err == -ECANCELED);
		if (err) {
			scan_free(w.scan);
			w.scan = NULL;
		}
	}
	assert_true(nr_new > 0 && nr_read > 0);
	assert_true(nr_judge > 1);
	assert_verdict(held, SCAN_REACHABLE);
}

static void rows_and_sums(void **state)
{
	struct scan_sums rows[2];
	taddr_t a = block(0);

	(void)state;
	for (unsigned int i = 1; i < 9; i++)
		block(i);
	put(GLOBALS, a);
	scan_all();
	assert_int_equal(scan_rows(w.scan, rows, 2), 0);
	assert_int_equal(rows[0].of[SCAN_REACHABLE].blocks, 1);
	assert_int_equal(rows[0].of[SCAN_DEFINITE].blocks, 2);
	assert_int_equal(rows[1].of[SCAN_DEFINITE].bytes, 3 * 64);
	assert_int_equal(scan_result(w.scan).sums.of[SCAN_DEFINITE].blocks, 8);
}

/* Impossible blocks: overlapping ones, one block twice, addresses beyond any process. */
static void wrong_books(void **state)
{
	taddr_t outer = block_at(HEAP + 0x1000, 0x800), inner = block_at(HEAP + 0x1100, 64), child = block(0);

	(void)state;
	block_at(inner, 64);
	block_at(UINT64_MAX - 8, 64);
	block_at(0x1000, UINT64_MAX);
	put(GLOBALS, inner);
	put(outer + 0x700, child); /* behind the inner block */
	scan_all();
	assert_verdict(outer, SCAN_UNSURE);
	assert_verdict(child, SCAN_REACHABLE);
	assert_true(scan_result(w.scan).nr_overlaps >= 2);
}

/* Past the pause there is no verdict (H5). */
static void given_up(void **state)
{
	(void)state;
	block(0);
	w.fail_after = 3;
	assert_int_equal(scan_new(&w.scan, &books, &w.options), 0);
	assert_int_equal(scan_read(w.scan, &w.snap), -ETIME);
}

static void too_many_pointers(void **state)
{
	taddr_t big = block_at(HEAP + PAGE, 200 * PAGE);

	(void)state;
	for (unsigned int i = 0; i < 8; i++)
		block(i);
	for (u64 i = 0; i < 100000; i++)
		put(big + 8 * i, HEAP + 0x100 * (i % 8 + 1));
	w.options.max_memory = 70000;
	assert_int_equal(scan_new(&w.scan, &books, &w.options), 0);
	assert_int_equal(scan_read(w.scan, &w.snap), -E2BIG);
}

static void no_blocks(void **state)
{
	(void)state;
	scan_all();
	assert_int_equal(scan_result(w.scan).sums.of[SCAN_DEFINITE].blocks, 0);
	assert_false(scan_find(w.scan, HEAP, &(struct scan_block_info){ 0 }));
}

/* A long chain of blocks needs no recursion. */
static void long_chain(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 4000; i++) {
		block_at(HEAP + 0x100 * (i + 1), 16);
		if (i)
			put(HEAP + 0x100 * (u64)i, HEAP + 0x100 * (i + 1));
	}
	scan_all();
	assert_int_equal(scan_result(w.scan).sums.of[SCAN_DEFINITE].blocks, 1);
	assert_int_equal(scan_result(w.scan).sums.of[SCAN_INDIRECT].blocks, 3999);
	scan_free(w.scan);
	w.next = 0;
	put(GLOBALS, HEAP + 0x100);
	scan_all();
	assert_int_equal(scan_result(w.scan).sums.of[SCAN_REACHABLE].blocks, 4000);
}

enum { NODES = 120, EDGES_EACH = 3, ROUNDS = 40 };

static bool reach[NODES][NODES]; /* [i][j]: block i leads to block j */

/* Blocks at random addresses, each with a few pointers. */
static void make_graph(unsigned int *seed)
{
	memset(reach, 0, sizeof(reach));
	for (unsigned int i = 0; i < NODES; i++)
		block_at(HEAP + 0x100 * (1 + (i * 37) % NODES), 64);
	for (unsigned int i = 0; i < NODES; i++) {
		for (unsigned int e = 0; e < (unsigned int)rand_r(seed) % EDGES_EACH; e++) {
			unsigned int j = (unsigned int)rand_r(seed) % NODES;

			put(w.blocks[i].addr + 8 * e, w.blocks[j].addr);
			reach[i][j] = true;
		}
	}
}

/* The verdicts by brute force. */
static void close_graph(void)
{
	for (unsigned int k = 0; k < NODES; k++)
		for (unsigned int i = 0; i < NODES; i++)
			for (unsigned int j = 0; j < NODES; j++)
				reach[i][j] |= reach[i][k] && reach[k][j];
}

/* A block that leads to a leader is in its cycle, and younger. Numbers are ages. */
static bool leads_others(unsigned int i)
{
	for (unsigned int j = 0; j < NODES; j++)
		if (j != i && reach[j][i] && (!reach[i][j] || j < i))
			return false;
	return true;
}

static void random_graphs(void **state)
{
	unsigned int seed = 7;

	for (int round = 0; round < ROUNDS; round++) {
		size_t expected = 0;

		teardown(state);
		setup(state);
		make_graph(&seed);
		close_graph();
		scan_all();
		for (unsigned int i = 0; i < NODES; i++) {
			assert_verdict(w.blocks[i].addr, leads_others(i) ? SCAN_DEFINITE : SCAN_INDIRECT);
			expected += leads_others(i);
		}
		assert_int_equal(scan_result(w.scan).sums.of[SCAN_DEFINITE].blocks, expected);
	}
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(others_blocks), TEST(drained_events), TEST(drained_unmaps), TEST(rows_and_sums),
		TEST(broken_off),    TEST(wrong_books),	   TEST(given_up),	 TEST(too_many_pointers),
		TEST(no_blocks),     TEST(long_chain),	   TEST(random_graphs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

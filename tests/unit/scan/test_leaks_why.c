/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Several scans of memory made by hand: blocks newly lost, found again, left out; and the choice of examples. */
#include "tests/unit/scan_world.h"
#include "user/scan/leaks.h"
#include "user/scan/leaks_why.h"

static struct heap *heap;
static struct leak_marks marks;

/* Block @n of 64 bytes by caller @stack, allocated @ms after the start. */
static taddr_t block_of_age(unsigned int n, u64 stack, u64 ms)
{
	taddr_t addr = HEAP + 0x100 * (n + 1);
	const struct heap_event ev = {
		.h = { .kind = EVENT_ALLOC, .fn = alloc_fn_find(NULL, "malloc"), .tid = 1 },
		.time_ns = ms * 1000000,
		.addr = addr,
		.size = 64,
		.stack = stack
	};

	assert_int_equal(heap_event(heap, &ev), 0);
	return addr;
}

static taddr_t block(unsigned int n, u64 stack)
{
	return block_of_age(n, stack, n + 1);
}

static void release(taddr_t addr)
{
	const struct heap_event ev = {
		.h = { .kind = EVENT_FREE, .fn = alloc_fn_find(NULL, "free"), .tid = 1 },
		.time_ns = 1,
		.addr = addr
	};

	assert_int_equal(heap_event(heap, &ev), 0);
}

static int begin(void **state)
{
	return setup(state) || heap_new(&heap, NULL) ? -1 : 0;
}

static int end(void **state)
{
	leak_marks_fini(&marks);
	heap_free(heap);
	return teardown(state);
}

/* The verdicts on the world as it is now, in @l, whose contents the caller frees. */
static void scan_now(struct leaks *l, enum leak_kinds kinds, const struct leaks_options *o)
{
	const struct scan_books books = scan_books_of(heap, true);
	size_t nr = heap_row_count(heap);
	struct scan_sums sums[16] = { 0 };
	u8 *left_out = NULL;

	scan_free(w.scan);
	w.scan = NULL;
	w.next = w.piece = 0;
	*l = (struct leaks){ .nr_rows = nr, .rows = calloc(nr + 1, sizeof(*l->rows)), .word_size = 8 };
	assert_int_equal(scan_new(&w.scan, &books, &w.options), 0);
	assert_int_equal(scan_read(w.scan, &w.snap), 0);
	assert_int_equal(scan_judge(w.scan), 0);
	assert_int_equal(scan_rows(w.scan, sums, nr), 0);
	for (size_t i = 0; i < nr; i++)
		l->rows[i].sums = sums[i];
	l->result = scan_result(w.scan);
	assert_int_equal(leaks_compare(l, w.scan, heap, &marks, kinds, &left_out), 0);
	assert_int_equal(leaks_link(l, w.scan, heap, left_out), 0);
	free(left_out);
	if (o)
		assert_int_equal(leaks_find_whys(l, w.scan, o), 0);
}

static void done(struct leaks *l)
{
	for (size_t i = 0; i < l->nr_whys; i++)
		leak_why_fini(&l->whys[i]);
	if (l->asked)
		leak_why_fini(l->asked);
	free(l->whys);
	free(l->asked);
	free(l->rows);
	free(l->links);
}

static void expect(enum leak_kinds kinds, u64 definite, u64 indirect, u64 fresh, u64 again, u64 left_out)
{
	struct leaks l;

	scan_now(&l, kinds, NULL);
	assert_int_equal(l.result.sums.of[SCAN_DEFINITE].blocks, definite);
	assert_int_equal(l.result.sums.of[SCAN_INDIRECT].blocks, indirect);
	assert_int_equal(l.rows[0].sums.of[SCAN_DEFINITE].bytes, definite * 64);
	assert_int_equal(l.rows[0].through.blocks, indirect);
	assert_int_equal(l.fresh.blocks, fresh);
	assert_int_equal(l.fresh.bytes, fresh * 64);
	assert_int_equal(l.again.blocks, again);
	assert_int_equal(l.left_out.blocks, left_out);
	done(&l);
}

static void kinds(void **state)
{
	taddr_t head = block(0, 10), behind = block(1, 10), hidden = block(2, 10);

	(void)state;
	put(head, behind);
	expect(LEAKS_ALL, 2, 1, 3, 0, 0);
	block(3, 10);
	put(GLOBALS, hidden);
	expect(LEAKS_NEW, 1, 0, 1, 1, 2);
	expect(LEAKS_NEW, 0, 0, 0, 0, 3);
	put(GLOBALS, 0);
	/* A block that is lost once more counts as new, but one that is still lost does not. */
	expect(LEAKS_LEAKED, 2, 1, 1, 0, 1);
	expect(LEAKS_LEAKED, 3, 1, 0, 0, 0);
	expect(LEAKS_ALL, 3, 1, 0, 0, 0);
}

/* The last scan is compared with the one before, but nothing of it is kept. */
static void last_scan(void **state)
{
	taddr_t found = block(0, 10);

	(void)state;
	block(1, 10);
	expect(LEAKS_ALL, 2, 0, 2, 0, 0);
	assert_int_equal(marks.nr, 2);
	block(2, 10);
	put(GLOBALS, found);
	marks.is_last = true;
	expect(LEAKS_NEW, 1, 0, 1, 1, 1);
	assert_int_equal(marks.nr, 0);
	assert_null(marks.list);
}

/* The oldest block of a ring is its leader, if few blocks are lost (found one by one) or many (by visiting all). */
static void oldest_of_ring(void **state)
{
	taddr_t old = block_of_age(1, 10, 300), young = block_of_age(0, 10, 900);
	struct scan_block_info info;
	struct leaks l;

	(void)state;
	put(young, old);
	put(old, young);
	for (unsigned int kept = 0; kept <= 100; kept += 100) {
		for (unsigned int i = 0; i < kept; i++)
			put(GLOBALS + (u64)8 * i, block(i + 2, 10));
		scan_now(&l, LEAKS_ALL, NULL);
		assert_int_equal(l.result.sums.of[SCAN_REACHABLE].blocks, kept);
		assert_int_equal(l.result.sums.of[SCAN_DEFINITE].blocks, 1);
		assert_true(scan_find(w.scan, young, &info));
		assert_int_equal(info.verdict, SCAN_INDIRECT);
		assert_int_equal(info.leader, old);
		done(&l);
	}
}

/* A new block at the address of a released lost block is not the same block. */
static void addresses_come_back(void **state)
{
	taddr_t lost = block(0, 10);
	const struct heap_event ev = {
		.h = { .kind = EVENT_ALLOC, .fn = alloc_fn_find(NULL, "malloc"), .tid = 1 },
		.time_ns = 900 * 1000000ULL,
		.addr = lost,
		.size = 64,
		.stack = 10
	};

	(void)state;
	expect(LEAKS_ALL, 1, 0, 1, 0, 0);
	release(lost);
	assert_int_equal(heap_event(heap, &ev), 0);
	expect(LEAKS_NEW, 1, 0, 1, 0, 0);
}

/* The example of a caller that grew most is its block of middle age. Possibly lost blocks get examples too. */
static void examples(void **state)
{
	taddr_t list[9], middle = block(0, 12);
	const u64 before[] = { 64, 0, 0 };
	struct leaks_options o = { .nr_whys = 1, .before = before, .nr_before = 3, .why_addr = middle + 5 };
	const struct leak_why *why;
	struct leaks l;

	(void)state;
	o.heap = heap;
	for (unsigned int i = 0; i < ARRAY_SIZE(list); i++) {
		list[i] = block(i + 1, 11);
		put(list[i] + 8, i ? list[i - 1] : 0);
	}
	put(GLOBALS + 16, list[8]);
	put(GLOBALS + 32, middle + 24);
	scan_now(&l, LEAKS_ALL, &o);
	assert_int_equal(l.nr_whys, 2);
	why = leaks_why(&l, 1);
	assert_non_null(why);
	assert_int_equal(why->verdict, SCAN_REACHABLE);
	assert_int_equal(why->addr, list[4]);
	assert_int_equal(why->root, ROOT_MEMORY);
	assert_int_equal(why->root_addr, GLOBALS + 16);
	assert_string_equal(why->root_path, "/bin/x");
	/* Blocks of one caller in a row are one step. */
	assert_int_equal(why->nr_steps, 1);
	assert_int_equal(why->steps[0].nr, 5);
	assert_int_equal(why->steps[0].addr, list[4]);
	why = leaks_why(&l, 0);
	assert_non_null(why);
	assert_int_equal(why->verdict, SCAN_POSSIBLE);
	assert_int_equal(why->steps[0].offset, 24);
	assert_null(leaks_why(&l, 2));
	assert_int_equal(l.asked->row, 0);
	assert_int_equal(l.asked->steps[0].addr, middle);
	done(&l);
	o = (struct leaks_options){ .heap = heap, .why_addr = HEAP + 8 };
	scan_now(&l, LEAKS_ALL, &o);
	assert_int_equal(l.asked->row, WHY_NO_ROW);
	assert_int_equal(l.asked->nr_steps, 0);
	done(&l);
}

/* A chain of alternating callers, longer than the limit: its two ends are kept. */
static void long_chains(void **state)
{
	struct leaks_options o = { .heap = heap };
	struct leaks l;
	taddr_t last = 0;
	u64 nr = 0;

	(void)state;
	for (unsigned int i = 0; i < 100; i++) {
		taddr_t b = block(i, 10 + i % 2);

		if (last)
			put(last, b);
		else
			put(GLOBALS, b);
		last = b;
	}
	o.why_addr = last;
	scan_now(&l, LEAKS_ALL, &o);
	assert_int_equal(l.asked->nr_steps, WHY_MAX_STEPS);
	for (size_t i = 0; i < l.asked->nr_steps; i++)
		nr += l.asked->steps[i].nr;
	assert_int_equal(nr + l.asked->nr_left_out, 100);
	assert_int_equal(l.asked->steps[0].addr, HEAP + 0x100);
	assert_int_equal(l.asked->steps[WHY_MAX_STEPS - 1].addr, last);
	done(&l);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(kinds),	TEST(last_scan),   TEST(oldest_of_ring), TEST(addresses_come_back),
		TEST(examples), TEST(long_chains),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of the heap: each rule by hand. */
#include <errno.h>

#include "tests/unit/books.h"
#include "user/heap/misuse.h"
#include "user/heap/row_table.h"

static void expect(const struct heap *h, u64 allocs, u64 frees, u64 live_bytes)
{
	struct heap_totals t = heap_totals(h);

	assert_int_equal(t.allocs, allocs);
	assert_int_equal(t.frees, frees);
	assert_int_equal(t.live_bytes, live_bytes);
	check_sums(h, 0);
}

static void test_alloc_free(void **state)
{
	struct heap *h = new_heap();
	struct heap_block b;

	(void)state;
	expect(h, 0, 0, 0);
	do_alloc(h, fn_malloc, 0x10, 100);
	do_alloc(h, fn_malloc, 0x20, 0);
	expect(h, 2, 0, 100);
	assert_true(heap_find(h, 0x10, &b));
	assert_int_equal(b.size, 100);
	assert_int_equal(b.time_ns, heap_totals(h).first_time_ns);
	assert_false(heap_find(h, 0x11, &b));
	do_free(h, 0x10);
	do_free(h, 0x30);
	do_free(h, 0);
	expect(h, 2, 1, 0);
	assert_int_equal(heap_totals(h).unknown_frees, 1);
	assert_int_equal(heap_calls(h, fn_malloc), 2);
	assert_int_equal(heap_calls(h, fn_free), 2);
	assert_int_equal(heap_calls(h, UINT16_MAX), 0);
	assert_int_equal(heap_row_get(h, 5).allocs, 0);
	heap_free(h);
	heap_free(NULL);
}

static void test_failure_and_retry(void **state)
{
	struct heap *h = new_heap();
	struct heap_event ev;

	(void)state;
	do_alloc(h, fn_malloc, 0, UINT64_MAX);
	assert_int_equal(heap_totals(h).failed_allocs, 1);
	ev = event(EVENT_ALLOC, fn_malloc);
	ev.h.flags = EVENT_RETRY;
	assert_int_equal(heap_event(h, &ev), 0); /* failed again */
	assert_int_equal(heap_totals(h).failed_allocs, 1);
	ev.addr = 0x40;
	ev.size = 8;
	assert_int_equal(heap_event(h, &ev), 0);
	assert_int_equal(heap_totals(h).failed_allocs, 0);
	assert_int_equal(heap_calls(h, fn_malloc), 1);
	expect(h, 1, 0, 8);
	ev.h.kind = EVENT_STACK;
	assert_int_equal(heap_event(h, &ev), -EINVAL);
	ev.h.kind = 0;
	assert_int_equal(heap_event(h, &ev), -EINVAL);
	heap_free(h);
}

static void test_collision_and_temporary(void **state)
{
	struct heap *h = new_heap();
	struct heap_event ev = event(EVENT_FREE, fn_free);

	(void)state;
	do_alloc(h, fn_malloc, 0x10, 100);
	do_alloc(h, fn_malloc, 0x10, 7);
	expect(h, 2, 1, 7);
	assert_int_equal(heap_totals(h).collisions, 1);
	ev.h.flags = EVENT_TEMPORARY;
	ev.addr = 0x10;
	assert_int_equal(heap_event(h, &ev), 0);
	assert_int_equal(heap_event(h, &ev), 0); /* double free: not temporary */
	expect(h, 2, 2, 0);
	assert_int_equal(heap_totals(h).temporary, 1);
	assert_int_equal(heap_totals(h).unknown_frees, 1);
	heap_free(h);
}

/* A release inside another one: of a block of its own, or of memory whose block has another address. */
static void test_release_within(void **state)
{
	struct heap *h = new_heap();
	struct heap_event ev = event(EVENT_FREE, fn_free);

	(void)state;
	do_alloc(h, fn_malloc, 0x10, 100);
	ev.h.flags = EVENT_WITHIN;
	ev.addr = 0x10;
	assert_int_equal(heap_event(h, &ev), 0);
	assert_int_equal(heap_event(h, &ev), 0);
	expect(h, 1, 1, 0);
	assert_int_equal(heap_totals(h).unknown_frees, 0);
	heap_free(h);
}

static void test_size_limit(void **state)
{
	struct heap *h = new_heap();

	(void)state;
	do_alloc(h, fn_malloc, 0x10, UINT64_MAX - 1);
	do_alloc(h, fn_mmap, PAGE, UINT64_MAX - 1);
	do_alloc(h, fn_mmap, UINT64_MAX - 10, PAGE);
	do_alloc(h, fn_mmap, UINT64_MAX, PAGE);
	check_sums(h, 0);
	do_unmap(h, PAGE, UINT64_MAX);
	do_free(h, 0x10);
	assert_int_equal(heap_totals(h).live_bytes, 0);
	check_sums(h, 0);
	heap_free(h);
}

static void test_peak(void **state)
{
	struct heap *h = new_heap();
	struct heap_event ev = event(EVENT_ALLOC, fn_malloc);
	u64 peak_time;

	(void)state;
	do_alloc(h, fn_malloc, 0x10, 100); /* row 0 */
	ev.stack = S + 1;
	ev.addr = 0x20;
	ev.size = 50;
	assert_int_equal(heap_event(h, &ev), 0); /* row 1 */
	peak_time = ev.time_ns;
	do_free(h, 0x10);
	ev.stack = S + 2;
	ev.addr = 0x30;
	ev.size = 60;
	assert_int_equal(heap_event(h, &ev), 0); /* row 2, below the peak */
	assert_int_equal(heap_row_get(h, 0).peak_bytes, 100);
	assert_int_equal(heap_row_get(h, 1).peak_bytes, 50); /* has not changed since */
	assert_int_equal(heap_row_get(h, 2).peak_bytes, 0);
	assert_int_equal(heap_totals(h).peak_bytes, 150);
	assert_int_equal(heap_totals(h).peak_time_ns, peak_time);
	do_alloc(h, fn_malloc, 0x40, 41); /* 151 */
	assert_int_equal(heap_row_get(h, 0).peak_bytes, 41);
	assert_int_equal(heap_row_get(h, 2).peak_bytes, 60);
	check_sums(h, 0);
	heap_free(h);
}

static void test_moves(void **state)
{
	struct heap *h = new_heap();
	struct heap_block b;

	(void)state;
	do_end(h, fn_realloc, 1, 0, 0x10, 10); /* realloc(NULL, 10) */
	expect(h, 1, 0, 10);
	do_begin(h, fn_realloc, 1, 0x10);
	expect(h, 1, 0, 10);
	assert_int_equal(heap_pending(h), 1);
	assert_int_equal(sum_blocks(h).unsure, 1);
	assert_false(heap_find(h, 0x10, &b));
	do_end(h, fn_realloc, 1, 0x10, 0x10, 20); /* in place */
	expect(h, 2, 1, 20);
	do_begin(h, fn_realloc, 1, 0x10);
	do_end(h, fn_realloc, 1, 0x10, 0x90, 30); /* moved */
	expect(h, 3, 2, 30);
	do_begin(h, fn_realloc, 1, 0x90);
	do_end(h, fn_realloc, 1, 0x90, 0, UINT64_MAX); /* failed: the block is as sure and as old as before */
	expect(h, 3, 2, 30);
	assert_true(heap_find(h, 0x90, &b));
	assert_false(b.is_unsure || b.is_pending);
	assert_int_equal(b.time_ns, heap_totals(h).last_time_ns - 2 * MS);
	assert_int_equal(heap_totals(h).failed_allocs, 1);
	do_begin(h, fn_realloc, 1, 0x90);
	do_end(h, fn_realloc, 1, 0x90, 0, 0); /* realloc(p, 0) */
	expect(h, 3, 3, 0);
	assert_int_equal(heap_totals(h).failed_allocs, 1);
	assert_int_equal(heap_calls(h, fn_realloc), 5);
	do_begin(h, fn_realloc, 1, 0xf0);
	do_end(h, fn_realloc, 1, 0xf0, 0x10, 5); /* unknown */
	expect(h, 4, 3, 5);
	assert_int_equal(heap_totals(h).unknown_frees, 1);
	assert_int_equal(heap_totals(h).collisions, 0);
	heap_free(h);
}

/* Another thread gets the address between entry and return. */
static void test_realloc_race(void **state)
{
	struct heap *h = new_heap();
	struct heap_block b;

	(void)state;
	do_alloc(h, fn_malloc, 0x10, 10);
	do_begin(h, fn_realloc, 1, 0x10);
	do_alloc(h, fn_malloc, 0x10, 77); /* proves that the old block was freed */
	expect(h, 2, 1, 77);
	do_begin(h, fn_realloc, 2, 0x10);
	do_end(h, fn_realloc, 1, 0x10, 0x20, 20);
	expect(h, 3, 1, 97);
	do_end(h, fn_realloc, 2, 0x10, 0x30, 30);
	expect(h, 4, 2, 50);
	/* also if the old block was not known */
	do_begin(h, fn_realloc, 1, 0x40);
	do_alloc(h, fn_malloc, 0x40, 4);
	do_end(h, fn_realloc, 1, 0x40, 0x50, 5);
	expect(h, 6, 2, 59);
	assert_true(heap_find(h, 0x40, &b));
	assert_int_equal(heap_totals(h).unknown_frees, 1);
	assert_int_equal(heap_totals(h).collisions, 0);
	heap_free(h);
}

/* Nested reallocs of one thread (signal handler), and reallocs that never return. */
static void test_realloc_lost_ends(void **state)
{
	struct heap *h = new_heap();

	(void)state;
	do_alloc(h, fn_malloc, 0x10, 10);
	do_alloc(h, fn_malloc, 0x20, 20);
	do_begin(h, fn_realloc, 1, 0x10);
	do_begin(h, fn_realloc, 1, 0x20);
	do_end(h, fn_realloc, 1, 0x20, 0x60, 60);
	do_end(h, fn_realloc, 1, 0x10, 0x70, 70);
	expect(h, 4, 2, 130);
	do_begin(h, fn_realloc, 1, 0x60); /* never returns; freed by another thread */
	do_free(h, 0x60);
	expect(h, 4, 3, 70);
	do_begin(h, fn_realloc, 1, 0x70); /* left by longjmp and called again */
	do_begin(h, fn_realloc, 1, 0x70);
	assert_int_equal(heap_pending(h), 1);
	do_end(h, fn_realloc, 1, 0x70, 0x80, 80);
	expect(h, 5, 4, 80);
	do_end(h, fn_realloc, 1, 0x80, 0x90, 90); /* begin lost */
	expect(h, 6, 5, 90);
	assert_int_equal(heap_totals(h).unknown_frees, 0);
	for (u32 i = 0; i < 10000;
	     i++) { /* threads killed in realloc: their number is bounded, and no block is lost */
		do_alloc(h, fn_malloc, 0x1000 + i * 16, 1);
		do_begin(h, fn_realloc, i + 10, 0x1000 + i * 16);
	}
	expect(h, 10006, 5, 10090);
	assert_true(heap_pending(h) <= 256);
	heap_free(h);
}

static void test_unmap(void **state)
{
	struct heap *h = new_heap();
	struct heap_block b;

	(void)state;
	do_alloc(h, fn_mmap, BASE, 10 * PAGE);
	do_unmap(h, BASE, PAGE); /* head */
	expect(h, 1, 0, 9 * PAGE);
	do_unmap(h, BASE + 9 * PAGE, PAGE); /* tail */
	expect(h, 1, 0, 8 * PAGE);
	do_unmap(h, BASE + 4 * PAGE, 2 * PAGE); /* middle */
	check_sums(h, 1);
	assert_int_equal(heap_totals(h).live_bytes, 6 * PAGE);
	assert_true(heap_find(h, BASE + 6 * PAGE, &b));
	assert_int_equal(b.size, 3 * PAGE);
	do_unmap(h, BASE, 5 * PAGE);
	expect(h, 1, 0, 3 * PAGE);
	do_alloc(h, fn_mmap, BASE, 2 * PAGE);
	do_alloc(h, fn_mmap, BASE + 20 * PAGE, PAGE);
	do_unmap(h, BASE + PAGE, 30 * PAGE); /* across three mappings */
	expect(h, 3, 2, PAGE);
	do_unmap(h, BASE, 10); /* rounded up to the page */
	expect(h, 3, 3, 0);
	do_unmap(h, BASE, PAGE);
	do_unmap(h, BASE, UINT64_MAX);
	assert_int_equal(heap_totals(h).unknown_frees, 2);
	assert_int_equal(heap_calls(h, fn_munmap), 8);
	heap_free(h);
}

static void test_map_fixed(void **state)
{
	struct heap *h = new_heap();

	(void)state;
	do_alloc(h, fn_mmap, BASE, 10 * PAGE);
	do_alloc(h, fn_mmap, BASE + 2 * PAGE, 2 * PAGE);
	check_sums(h, 1);
	assert_int_equal(heap_totals(h).live_bytes, 10 * PAGE);
	do_alloc(h, fn_mmap, BASE, 10 * PAGE);
	expect(h, 3, 2, 10 * PAGE);
	do_alloc(h, fn_malloc, BASE, 3); /* munmap does not free blocks of malloc */
	do_free(h, BASE);
	expect(h, 4, 3, 10 * PAGE);
	assert_int_equal(heap_totals(h).collisions, 0);
	heap_free(h);
}

static void test_mremap(void **state)
{
	struct heap *h = new_heap();

	(void)state;
	do_alloc(h, fn_mmap, BASE, 4 * PAGE);
	do_begin(h, fn_mremap, 1, BASE);
	expect(h, 1, 0, 4 * PAGE);
	do_end(h, fn_mremap, 1, BASE, BASE, 8 * PAGE);
	expect(h, 2, 1, 8 * PAGE);
	do_begin(h, fn_mremap, 1, BASE);
	do_end(h, fn_mremap, 1, BASE, 0, 0); /* EINVAL, not realloc(p, 0) */
	expect(h, 2, 1, 8 * PAGE);
	do_begin(h, fn_mremap, 1, BASE + 6 * PAGE); /* the tail moves away */
	do_end(h, fn_mremap, 1, BASE + 6 * PAGE, BASE + 100 * PAGE, 2 * PAGE);
	expect(h, 3, 1, 8 * PAGE);
	do_begin(h, fn_mremap, 1, BASE);
	do_alloc(h, fn_mmap, BASE, PAGE); /* of another thread */
	do_end(h, fn_mremap, 1, BASE, BASE + 200 * PAGE, 6 * PAGE);
	expect(h, 5, 2, 9 * PAGE);
	do_begin(h, fn_mremap, 1, BASE + 200 * PAGE);
	do_alloc(h, fn_mmap, BASE + 202 * PAGE, PAGE);
	do_end(h, fn_mremap, 1, BASE + 200 * PAGE, 0,
	       PAGE); /* reports a failure, but another block has the place */
	expect(h, 6, 3, 4 * PAGE);
	assert_int_equal(heap_totals(h).collisions, 1);
	do_begin(h, fn_mremap, 1, BASE + 100 * PAGE); /* never returns */
	do_unmap(h, BASE + 100 * PAGE, PAGE);	      /* freeing a part does not free the rest */
	assert_int_equal(heap_totals(h).unknown_frees, 1);
	expect(h, 6, 3, 4 * PAGE);
	do_end(h, fn_mremap, 1, BASE + 100 * PAGE, 0, PAGE);
	do_begin(h, fn_mremap, 1, BASE); /* never returns */
	do_unmap(h, BASE, PAGE);
	expect(h, 6, 4, 3 * PAGE);
	do_end(h, fn_mremap, 9, BASE + 100 * PAGE, BASE, PAGE); /* begin lost */
	expect(h, 7, 5, 2 * PAGE);
	assert_int_equal(heap_totals(h).unknown_frees, 1);
	heap_free(h);
}

/* Mappings that come and go need only the memory of those that are live at once. */
static void test_mapping_memory(void **state)
{
	struct heap *h = new_heap();
	u64 memory = 0;

	(void)state;
	do_alloc(h, fn_mmap, BASE, PAGE);
	for (u32 i = 0; i < 1000; i++) {
		if (i == 500) /* by then the timeline has all its points */
			memory = heap_memory(h);
		do_alloc(h, fn_mmap, BASE + 10 * PAGE, 3 * PAGE);
		do_unmap(h, BASE + 11 * PAGE, PAGE);
		do_unmap(h, BASE + 10 * PAGE, 3 * PAGE);
	}
	expect(h, 1001, 1000, PAGE);
	assert_int_equal(heap_memory(h), memory);
	heap_free(h);
}

/* Times are kept for a year, and are the maximum from then on. A time before the first event counts as its time. */
static void test_times(void **state)
{
	const u64 start = 5000 * MS;
	struct heap *h = new_heap();
	struct heap_event ev = event(EVENT_ALLOC, fn_malloc);
	const u64 times[] = { start, start + 1, start + 100 * 86400000ULL * MS, start + (MS << 36), 0 };
	const u64 kept[] = { start, start, start + 100 * 86400000ULL * MS,
			     start + (((1ULL << 36) - 1) << 19) / MS * MS, start };
	struct heap_block b;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(times); i++) {
		ev.time_ns = times[i];
		ev.addr = 0x10 + i * 0x10;
		assert_int_equal(heap_event(h, &ev), 0);
		assert_true(heap_find(h, ev.addr, &b));
		assert_int_equal(b.time_ns, kept[i]);
	}
	assert_int_equal(heap_totals(h).first_time_ns, times[0]);
	assert_int_equal(heap_totals(h).last_time_ns, times[3]);
	heap_free(h);
}

/* Each pair of stack and function is one row, whatever the number of rows. */
static void test_rows(void **state)
{
	enum { NR_STACKS = 2000 };
	const u16 fns[] = { fn_malloc, fn_realloc, fn_mremap };
	struct heap *h = new_heap();
	struct heap_event ev = event(EVENT_ALLOC, 0);

	(void)state;
	for (u32 round = 0; round < 2; round++)
		for (u32 i = 0; i < 3 * NR_STACKS; i++) {
			ev.h.fn = fns[i / NR_STACKS];
			ev.stack = i % NR_STACKS;
			ev.addr = (1 + round * 3 * NR_STACKS + i) * PAGE;
			ev.size = 1 + i % 4000;
			assert_int_equal(heap_event(h, &ev), 0);
		}
	assert_int_equal(heap_row_count(h), 3 * NR_STACKS);
	for (u32 i = 0; i < 3 * NR_STACKS; i++) {
		struct heap_row r = heap_row_get(h, i);

		assert_int_equal(r.fn, fns[i / NR_STACKS]);
		assert_int_equal(r.stack, i % NR_STACKS);
		assert_int_equal(r.allocs, 2);
		assert_int_equal(r.live_bytes, 2 * (1 + i % 4000));
	}
	check_sums(h, 0);
	heap_free(h);
}

/* One stack with many functions: the hashes are close to each other, but each has a row. */
static void test_row_functions(void **state)
{
	struct budget budget = { 0 };
	struct row_table t;
	u32 row;

	(void)state;
	row_table_init(&t, 1, &budget);
	for (u32 round = 0; round < 2; round++)
		for (u32 fn = 0; fn < 250; fn++) {
			assert_int_equal(row_table_get(&t, S, fn, &row), 0);
			assert_int_equal(row, fn);
		}
	row_table_fini(&t);
}

/* Rows give all bytes back to the budget, and stay within it. */
static void test_row_budget(void **state)
{
	struct budget budget = { .limit = 100000 };
	struct row_table t, copy;
	u32 row;
	u64 stack = 0;

	(void)state;
	row_table_init(&t, 1, &budget);
	while (row_table_get(&t, stack, 1, &row) == 0)
		assert_int_equal(row, stack++);
	assert_true(stack > 500 && budget.used <= 100000);
	for (u64 i = 0; i < stack; i++) {
		assert_int_equal(row_table_get(&t, i, 1, &row), 0);
		assert_int_equal(row, i);
	}
	assert_int_equal(row_table_copy(&copy, &t, &budget), -ENOMEM);
	budget.limit = 0;
	assert_int_equal(row_table_copy(&copy, &t, &budget), 0);
	assert_int_equal(row_table_get(&copy, stack - 1, 1, &row), 0);
	assert_int_equal(row, stack - 1);
	row_table_fini(&copy);
	row_table_fini(&t);
	assert_int_equal(budget.used, 0);
}

static void test_taint(void **state)
{
	struct heap *h = new_heap();
	struct heap_block b;

	(void)state;
	do_alloc(h, fn_malloc, 0x10, 10);
	do_alloc(h, fn_mmap, BASE, PAGE);
	assert_int_equal(sum_blocks(h).unsure, 0);
	heap_taint(h);
	do_alloc(h, fn_malloc, 0x20, 20);
	assert_int_equal(sum_blocks(h).unsure, 2);
	do_begin(h, fn_realloc, 1, 0x20);
	heap_taint(h);
	do_end(h, fn_realloc, 1, 0x20, 0, 1);
	assert_int_equal(sum_blocks(h).unsure, 3);
	for (u32 i = 0; i < 10000; i++) { /* more often than there are epochs */
		do_alloc(h, fn_malloc, 0x1000, 1);
		assert_true(heap_find(h, 0x1000, &b) && !b.is_unsure);
		heap_taint(h);
		assert_true(heap_find(h, 0x1000, &b) && b.is_unsure);
		assert_true(heap_find(h, 0x10, &b) && b.is_unsure);
		assert_true(heap_find(h, BASE, &b) && b.is_unsure);
	}
	heap_free(h);
}

static void test_clone(void **state)
{
	struct heap *h = new_heap();
	struct heap *copy;

	(void)state;
	for (u32 i = 1; i <= 1000; i++)
		do_alloc(h, fn_malloc, i * 16, i);
	do_alloc(h, fn_mmap, BASE, 4 * PAGE);
	do_begin(h, fn_realloc, 1, 16);
	do_begin(h, fn_mremap, 1, BASE + PAGE);
	assert_int_equal(heap_clone(&copy, h), 0);
	assert_int_equal(heap_pending(copy), 0);
	assert_int_equal(sum_blocks(copy).unsure, 3); /* both pieces of the mapping */
	check_sums(copy, 1);
	for (u32 i = 1; i <= 1000; i++)
		do_free(copy, i * 16);
	assert_int_equal(heap_totals(copy).live_bytes, 4 * PAGE);
	assert_int_equal(heap_totals(copy).unknown_frees, 0);
	check_sums(copy, 1);
	do_end(h, fn_mremap, 1, BASE + PAGE, BASE + PAGE, 4 * PAGE);
	do_end(h, fn_realloc, 1, 16, 16, 2);
	expect(h, 1003, 1, 500501 + 5 * PAGE);
	heap_free(h);
	heap_free(copy);
}

static void test_limit(void **state)
{
	struct heap *h = new_heap();
	struct heap_event ev = event(EVENT_ALLOC, fn_malloc);
	struct heap *copy;
	u64 nr = 0;
	int err;

	(void)state;
	heap_set_limit(h, 440000);
	do {
		ev.addr = ++nr * 16;
		ev.size = 1;
		ev.stack = STACK_FIRST_ID + nr % 1000;
		ev.h.fn = nr % 3 ? fn_malloc : fn_mmap;
		err = heap_event(h, &ev);
	} while (!err);
	assert_int_equal(err, -ENOMEM);
	assert_true(nr > 1000 && heap_memory(h) <= 440000);
	assert_int_equal(heap_lost(h), 1);
	assert_int_equal(heap_totals(h).allocs, nr - 1);
	check_sums(h, 0);
	heap_set_limit(h, 1000);
	assert_int_equal(heap_clone(&copy, h), -ENOMEM);
	for (u64 i = 1; i <= nr; i++) {
		if (i % 3)
			do_free(h, i * 16);
		else
			do_alloc(h, fn_malloc, 0, 0);
	}
	do_unmap(h, 0x10, nr * 16);
	expect(h, nr - 1, nr - 1, 0);
	heap_free(h);
}

/* The return of a realloc was lost: its old block is freed when the thread makes another call, but not before. */
static void test_lost_end(void **state)
{
	struct heap *h = new_heap();

	(void)state;
	do_alloc(h, fn_malloc, BASE, 100);
	do_begin(h, fn_realloc, 1, BASE);
	do_alloc(h, fn_malloc, BASE + 0x1000, 10);
	assert_int_equal(heap_totals(h).frees, 0); /* no event is known to be lost: a signal handler */
	heap_expect_gaps(h);
	do_alloc(h, fn_malloc, BASE + 0x2000, 10);
	assert_int_equal(heap_totals(h).frees, 1);
	assert_int_equal(heap_totals(h).live_bytes, 20);
	do_begin(h, fn_realloc, 2, BASE + 0x1000);
	do_alloc(h, fn_malloc, BASE + 0x3000, 10); /* by another thread */
	assert_int_equal(heap_totals(h).frees, 1);
	heap_end(h);
	assert_int_equal(heap_totals(h).frees, 2);
	heap_free(h);
}

/* The first block of a pool lies at the beginning of the memory that the pool got from malloc. */
static void test_pool(void **state)
{
	u16 fn_take = alloc_fn_find(NULL, "heaptap:alloc"), fn_give = alloc_fn_find(NULL, "heaptap:free");
	struct heap *h = new_heap(), *copy;
	struct heap_event ev = event(EVENT_FREE, fn_give);
	struct heap_block b;

	(void)state;
	assert_int_equal(heap_check(h, true), 0);
	do_alloc(h, fn_malloc, 0x1000, 100);
	do_alloc(h, fn_take, 0x1000, 30);
	assert_true(heap_find(h, 0x1000, &b));
	assert_int_equal(b.size, 30);
	assert_int_equal(heap_totals(h).live_bytes, 130);
	assert_int_equal(heap_totals(h).collisions, 0);
	assert_int_equal(heap_clone(&copy, h), 0);
	/* In order: the block, then the memory. */
	ev.addr = 0x1000;
	assert_int_equal(heap_event(h, &ev), 0);
	assert_true(heap_find(h, 0x1000, &b));
	assert_int_equal(b.size, 100);
	do_free(h, 0x1000);
	expect(h, 2, 2, 0);
	/* The memory first: the block stays. */
	do_free(copy, 0x1000);
	assert_int_equal(heap_totals(copy).live_bytes, 30);
	assert_int_equal(heap_event(copy, &ev), 0);
	expect(copy, 2, 2, 0);
	/* realloc of the memory. */
	do_alloc(h, fn_malloc, 0x1000, 100);
	do_alloc(h, fn_take, 0x1000, 30);
	do_begin(h, fn_realloc, 1, 0x1000);
	do_end(h, fn_realloc, 1, 0x1000, 0x2000, 200);
	assert_int_equal(heap_totals(h).live_bytes, 230);
	assert_true(heap_find(h, 0x1000, &b));
	assert_int_equal(b.size, 30);
	assert_int_equal(heap_misuse_counts(h).of[MISUSE_MISMATCHED], 0);
	do_free(h, 0x1000);
	assert_int_equal(heap_misuse_counts(h).of[MISUSE_MISMATCHED], 1);
	heap_free(h);
	heap_free(copy);
}

/* Enter a block at @addr, allocated at @time_ns. */
static void alloc_at(struct heap *h, taddr_t addr, u64 time_ns)
{
	struct heap_event ev = event(EVENT_ALLOC, fn_malloc);

	ev.addr = addr;
	ev.size = 8;
	ev.time_ns = time_ns;
	assert_int_equal(heap_event(h, &ev), 0);
}

static struct heap_block block_at(const struct heap *h, taddr_t addr)
{
	struct heap_block b;

	assert_true(heap_find(h, addr, &b));
	return b;
}

/* Blocks of one moment keep the order of their allocations; so do those of a few ns, for as long as a trace lasts. */
static void test_order(void **state)
{
	enum { AT_ONCE = 1000, LATE = 0x1000 };
	const u64 start_ns = 5000 * MS, day_ns = 86400000 * MS;
	struct heap *h = new_heap();

	(void)state;
	alloc_at(h, 0x10, start_ns);
	for (taddr_t i = 0; i < AT_ONCE; i++)
		alloc_at(h, 0x100000 - i * 16, start_ns + 7 * MS);
	for (taddr_t i = 1; i < AT_ONCE; i++) {
		struct heap_block older = block_at(h, 0x100000 - (i - 1) * 16);
		struct heap_block younger = block_at(h, 0x100000 - i * 16);

		assert_true(older.order < younger.order);
		assert_int_equal(younger.time_ns, start_ns + 7 * MS);
	}
	/* The first second has a unit of 16 ns, a day another one. */
	alloc_at(h, 0x30, start_ns + 1000 * MS);
	alloc_at(h, 0x20, start_ns + 1000 * MS + 5000);
	alloc_at(h, LATE, start_ns + day_ns);
	alloc_at(h, LATE - 16, start_ns + day_ns);
	assert_true(block_at(h, 0x30).order < block_at(h, 0x20).order);
	assert_true(block_at(h, LATE).order < block_at(h, LATE - 16).order);
	assert_true(block_at(h, 0x20).order < block_at(h, LATE).order);
	assert_int_equal(block_at(h, 0x10).time_ns, start_ns);
	assert_int_equal(block_at(h, 0x20).time_ns, start_ns + 1000 * MS);
	assert_int_equal(block_at(h, LATE).time_ns, start_ns + day_ns);
	heap_free(h);
}

/* However many blocks one moment has, the time of none is wrong by a millisecond. */
static void test_order_of_very_many(void **state)
{
	enum { VERY_MANY = 100000 };
	struct heap *h = new_heap();
	u64 last = 0;

	(void)state;
	for (taddr_t i = 1; i <= VERY_MANY; i++) {
		struct heap_block b;

		alloc_at(h, i * 16, 9 * MS);
		b = block_at(h, i * 16);
		assert_true(b.order >= last);
		assert_int_equal(b.time_ns, 9 * MS);
		last = b.order;
	}
	alloc_at(h, 8, 10 * MS);
	assert_int_equal(block_at(h, 8).time_ns, 10 * MS);
	heap_free(h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_order_of_very_many),
		cmocka_unit_test(test_alloc_free),
		cmocka_unit_test(test_pool),
		cmocka_unit_test(test_failure_and_retry),
		cmocka_unit_test(test_collision_and_temporary),
		cmocka_unit_test(test_release_within),
		cmocka_unit_test(test_size_limit),
		cmocka_unit_test(test_peak),
		cmocka_unit_test(test_moves),
		cmocka_unit_test(test_realloc_race),
		cmocka_unit_test(test_realloc_lost_ends),
		cmocka_unit_test(test_unmap),
		cmocka_unit_test(test_map_fixed),
		cmocka_unit_test(test_mremap),
		cmocka_unit_test(test_mapping_memory),
		cmocka_unit_test(test_times),
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_row_functions),
		cmocka_unit_test(test_row_budget),
		cmocka_unit_test(test_taint),
		cmocka_unit_test(test_lost_end),
		cmocka_unit_test(test_clone),
		cmocka_unit_test(test_limit),
	};

	return cmocka_run_group_tests(tests, find_functions, NULL);
}

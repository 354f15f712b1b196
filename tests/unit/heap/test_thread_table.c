/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The allocations of each thread: their sums are those of the heap, with any number of threads and any memory. */
#include "tests/unit/books.h"

#include "user/heap/thread_table.h"

static void alloc_by(struct heap *h, u32 tid, taddr_t addr, u64 size)
{
	struct heap_event ev = event(EVENT_ALLOC, fn_malloc);

	ev.h.tid = tid;
	ev.addr = addr;
	ev.size = size;
	assert_int_equal(heap_event(h, &ev), 0);
}

/* Live blocks of each thread. */
static u64 live[THREADS_MAX + 1];

static int count_block(void *ctx, const struct heap_block *block)
{
	struct thread_row row;

	assert_true(heap_thread(ctx, block->thread, &row));
	live[block->thread]++;
	return 0;
}

/* Returns the number of rows. */
static size_t check_threads(struct heap *h)
{
	u64 allocs = 0, bytes = 0;
	struct thread_row row;
	size_t nr = 0;

	memset(live, 0, sizeof(live));
	assert_int_equal(heap_for_each_block(h, count_block, h), 0);
	while (heap_thread(h, nr, &row))
		assert_true(live[nr++] <= row.allocs);
	nr = 0;

	for (; heap_thread(h, nr, &row); nr++) {
		allocs += row.allocs;
		bytes += row.alloc_bytes;
	}
	assert_int_equal(allocs, heap_totals(h).allocs);
	assert_int_equal(bytes, heap_totals(h).alloc_bytes);
	return nr;
}

static void each_thread_has_its_own(void **state)
{
	struct heap *h = new_heap();
	struct thread_row row;

	(void)state;
	assert_false(heap_thread(h, 0, &row));
	/* Equal low bits: one place in the cache. */
	for (u32 i = 0; i < 300; i++)
		alloc_by(h, 7 + i % 3 * THREADS_CACHED, 16 * (i + 1), i % 3 + 1);
	assert_int_equal(check_threads(h), 3);
	for (u32 i = 0; i < 3; i++) {
		assert_true(heap_thread(h, i, &row));
		assert_int_equal(row.tid, 7 + i * THREADS_CACHED);
		assert_int_equal(row.allocs, 100);
		assert_int_equal(row.alloc_bytes, 100 * (i + 1));
	}
	do_begin(h, fn_realloc, 9, 16);
	do_end(h, fn_realloc, 9, 16, 0x100000, 50);
	assert_true(heap_thread(h, 3, &row));
	assert_int_equal(row.tid, 9);
	assert_int_equal(row.alloc_bytes, 50);
	assert_int_equal(check_threads(h), 4);
	/* The block that the realloc took was one of the second thread. */
	for (u32 i = 0; i < 4; i++)
		assert_int_equal(live[i], i == 0 ? 99 : i < 3 ? 100 : 1);
	/* The thread that allocated a block has it, whichever thread frees it. */
	do_free(h, 32);
	assert_int_equal(check_threads(h), 4);
	assert_int_equal(live[1], 99);
	heap_free(h);
}

static void too_many_share_a_row(void **state)
{
	struct heap *h = new_heap();
	struct thread_row row;

	(void)state;
	for (u32 i = 0; i < 2 * THREADS_MAX; i++)
		alloc_by(h, i, 16 * (i + 1), 1);
	assert_int_equal(check_threads(h), THREADS_MAX + 1);
	assert_true(heap_thread(h, THREADS_MAX, &row));
	assert_int_equal(row.tid, 0);
	assert_int_equal(row.allocs, THREADS_MAX);
	assert_int_equal(live[THREADS_MAX], THREADS_MAX);
	heap_free(h);
}

static void no_memory_loses_no_count(void **state)
{
	struct heap *h = new_heap();

	(void)state;
	for (u32 i = 0; i < 3000; i++)
		alloc_by(h, 1, 16 * (i + 1), 1);
	heap_set_limit(h, heap_memory(h));
	for (u32 i = 0; i < 100; i++)
		alloc_by(h, 100 + i, 16 * (i + 1), 1); /* in place of the first blocks */
	assert_true(check_threads(h) < 100);
	assert_int_equal(heap_lost(h), 0);
	heap_free(h);
}

static void span_and_child(void **state)
{
	struct heap *h = new_heap(), *child;
	struct thread_row row;

	(void)state;
	alloc_by(h, 5, 0x10, 100);
	heap_span_begin(h);
	assert_false(heap_thread(h, 0, &row));
	alloc_by(h, 6, 0x20, 10);
	assert_int_equal(heap_clone(&child, h), 0);
	heap_free(h);
	alloc_by(child, 6, 0x30, 1);
	alloc_by(child, 8, 0x40, 2);
	assert_int_equal(check_threads(child), 2);
	assert_true(heap_thread(child, 0, &row));
	assert_int_equal(row.alloc_bytes, 11);
	heap_free(child);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_thread_has_its_own),
		cmocka_unit_test(too_many_share_a_row),
		cmocka_unit_test(no_memory_loses_no_count),
		cmocka_unit_test(span_and_child),
	};

	return cmocka_run_group_tests(tests, find_functions, NULL);
}

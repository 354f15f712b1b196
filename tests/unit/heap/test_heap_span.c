/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of spans of time: by hand, and three spans against the whole time. */
#include "tests/unit/books.h"

static void test_by_hand(void **state)
{
	struct heap *h = new_heap();
	struct heap_block b;
	struct heap_totals t;

	(void)state;
	do_alloc(h, fn_malloc, 0x10, 100);
	do_alloc(h, fn_malloc, 0x20, 10);
	do_alloc(h, fn_malloc, 0, 10);
	do_free(h, 0x999);
	heap_span_begin(h);
	t = heap_totals(h);
	assert_true(!t.allocs && !t.frees && !t.live_bytes && !t.peak_bytes && !t.failed_allocs &&
		    !t.unknown_frees);
	assert_int_equal(heap_row_count(h), 0);
	assert_int_equal(heap_calls(h, fn_malloc), 0);
	do_free(h, 0x10); /* known, but not counted */
	do_alloc(h, fn_malloc, 0x30, 7);
	do_begin(h, fn_realloc, 1, 0x20);
	assert_int_equal(heap_pending(h), 0);
	do_end(h, fn_realloc, 1, 0x20, 0x40, 20);
	check_sums(h, 0);
	assert_false(heap_find(h, 0x20, &b));
	assert_true(heap_find(h, 0x30, &b));
	assert_int_equal(b.row, 0);
	heap_span_end(h);
	do_alloc(h, fn_malloc, 0x50, 1000);
	do_alloc(h, fn_malloc, 0, 10);
	do_free(h, 0x888);
	do_free(h, 0x30);
	t = heap_totals(h);
	assert_int_equal(t.allocs, 2);
	assert_int_equal(t.frees, 1);
	assert_int_equal(t.live_bytes, 20);
	assert_int_equal(t.peak_bytes, 27);
	assert_int_equal(t.failed_allocs, 0);
	assert_int_equal(t.unknown_frees, 0);
	assert_int_equal(heap_calls(h, fn_malloc), 1);
	assert_int_equal(heap_calls(h, fn_free), 1);
	assert_int_equal(heap_row_count(h), 2);
	assert_int_equal(heap_row_get(h, 2).allocs, 0);
	check_sums(h, 0);
	heap_free(h);
}

/* A child has the blocks of its parent, and no others. */
static void test_clone(void **state)
{
	struct heap *h = new_heap(), *child;

	(void)state;
	for (u64 i = 1; i < 200; i++) {
		struct heap_event ev = event(EVENT_ALLOC, fn_malloc);

		ev.addr = i * 16;
		ev.size = i;
		ev.stack = 100 + i;
		assert_int_equal(heap_event(h, &ev), 0);
	}
	heap_span_begin(h);
	do_alloc(h, fn_malloc, 0x10000, 5);
	assert_int_equal(heap_clone(&child, h), 0);
	heap_free(h);
	do_free(child, 16);
	do_alloc(child, fn_malloc, 0x20000, 6);
	assert_int_equal(heap_row_count(child), 1);
	assert_int_equal(heap_totals(child).live_bytes, 11);
	check_sums(child, 0);
	heap_free(child);
}

static u64 random_state = 88172645463325252ULL;

static u32 below(u32 n)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (random_state >> 16) % n;
}

/* A random event, mostly of a live block. */
static struct heap_event any_event(void)
{
	struct heap_event ev = event(1 + below(4), fn_malloc);
	bool is_mapping = below(4) == 0;

	ev.h.tid = 1 + below(3);
	ev.stack = S + below(40);
	ev.addr = below(20) ? 0x1000 + below(300) * 16 : 0;
	ev.size = below(500);
	if (ev.h.kind == EVENT_FREE) {
		ev.h.fn = is_mapping ? fn_munmap : fn_free;
		ev.h.flags = is_mapping ? EVENT_UNMAP : below(2) ? EVENT_TEMPORARY : 0;
	} else if (ev.h.kind != EVENT_ALLOC) {
		ev.h.fn = is_mapping ? fn_mremap : fn_realloc;
		ev.old_addr = 0x1000 + below(300) * 16;
	} else if (is_mapping) {
		ev.h.fn = fn_mmap;
	}
	if (is_mapping) {
		ev.addr = ev.addr ? 0x1000000 + below(100) * PAGE : 0;
		ev.old_addr = ev.old_addr ? 0x1000000 + below(100) * PAGE : 0;
		ev.size = below(5) * PAGE;
	}
	return ev;
}

/* Each block belongs to one span, whenever it is freed. */
static void test_parts_make_the_whole(void **state)
{
	enum { NR = 20000, NR_PARTS = 3 };

	(void)state;
	for (int round = 0; round < 10; round++) {
		struct heap *whole = new_heap(), *parts[NR_PARTS] = { new_heap(), new_heap(), new_heap() };
		int first = (int)below(NR), second = first + (int)below((u32)(NR - first));
		struct heap_totals sum = { 0 }, all;
		u64 calls = 0;

		for (int i = 0; i < NR; i++) {
			struct heap_event ev = any_event();

			if (i == first) {
				heap_span_end(parts[0]);
				heap_span_begin(parts[1]);
			}
			if (i == second) {
				heap_span_end(parts[1]);
				heap_span_begin(parts[2]);
			}
			assert_int_equal(heap_event(whole, &ev), 0);
			for (int k = 0; k < NR_PARTS; k++)
				assert_int_equal(heap_event(parts[k], &ev), 0);
		}
		all = heap_totals(whole);
		for (int k = 0; k < NR_PARTS; k++) {
			struct heap_totals t = heap_totals(parts[k]);

			sum.allocs += t.allocs;
			sum.frees += t.frees;
			sum.alloc_bytes += t.alloc_bytes;
			sum.live_blocks += t.live_blocks;
			sum.live_bytes += t.live_bytes;
			sum.temporary += t.temporary;
			sum.collisions += t.collisions;
			sum.unknown_frees += t.unknown_frees;
			calls += heap_calls(parts[k], fn_malloc);
			assert_true(t.peak_bytes <= all.peak_bytes);
			heap_free(parts[k]);
		}
		same_sums(&sum, &all);
		/* One free belongs to no span, because its block was freed before. */
		assert_true(sum.collisions >= all.collisions);
		assert_int_equal(sum.unknown_frees, all.unknown_frees);
		assert_int_equal(calls, heap_calls(whole, fn_malloc));
		heap_free(whole);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_by_hand),
		cmocka_unit_test(test_clone),
		cmocka_unit_test(test_parts_make_the_whole),
	};

	return cmocka_run_group_tests(tests, find_functions, NULL);
}

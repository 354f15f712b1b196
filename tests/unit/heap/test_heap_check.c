/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Wrong releases: which are found, which are not reported when events are missing, and which limits hold. */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "user/heap/heap.h"
#include "user/heap/misuse.h"

static struct heap *heap;
static u64 now_ns;

static int begin(void **state)
{
	(void)state;
	now_ns = 1000;
	return heap_new(&heap, NULL);
}

static int end(void **state)
{
	(void)state;
	heap_free(heap);
	return 0;
}

static void event(u8 kind, const char *fn, taddr_t addr, taddr_t old, u64 size, u64 stack)
{
	const struct heap_event ev = {
		.h = { .kind = kind, .fn = alloc_fn_find(NULL, fn), .pid = 1, .tid = 1 },
		.time_ns = now_ns++,
		.addr = addr,
		.old_addr = old,
		.size = size,
		.stack = stack
	};

	assert_int_equal(heap_event(heap, &ev), 0);
}

static void alloc(const char *fn, taddr_t addr, u64 stack)
{
	event(EVENT_ALLOC, fn, addr, 0, 32, stack);
}

static void release(const char *fn, taddr_t addr, u64 stack)
{
	event(EVENT_FREE, fn, addr, 0, 0, stack);
}

static void resize(taddr_t old, taddr_t addr, u64 stack)
{
	event(EVENT_REALLOC_BEGIN, "realloc", 0, old, 64, stack);
	event(EVENT_REALLOC_END, "realloc", addr, old, 64, stack);
}

static size_t count(void)
{
	size_t nr;

	heap_misuses(heap, &nr);
	return nr;
}

static void expect(size_t i, enum misuse_kind kind, u64 nr, u64 alloc_stack, u64 free_stack,
		   u64 earlier_stack)
{
	size_t all;
	const struct misuse *m = heap_misuses(heap, &all) + i;

	assert_true(i < all);
	assert_int_equal(m->kind, kind);
	assert_int_equal(m->count, nr);
	assert_int_equal(heap_row_get(heap, m->free_row).stack, free_stack);
	assert_int_equal(m->alloc_row == MISUSE_NO_ROW ? 0 : heap_row_get(heap, m->alloc_row).stack,
			 alloc_stack);
	assert_int_equal(m->earlier_row == MISUSE_NO_ROW ? 0 : heap_row_get(heap, m->earlier_row).stack,
			 earlier_stack);
}

static void mismatches(void **state)
{
	(void)state;
	assert_int_equal(heap_check(heap, true), 0);
	for (int i = 0; i < 3; i++) {
		alloc("_Znwm", 0x1000, 10);
		release("free", 0x1000, 20);
	}
	alloc("malloc", 0x1000, 11);
	release("_ZdlPv", 0x1000, 21);
	alloc("_Znam", 0x1000, 12);
	resize(0x1000, 0x2000, 22);
	/* Now it is a block that realloc allocated. */
	release("free", 0x2000, 23);
	alloc("calloc", 0x1000, 13);
	resize(0x1000, 0x1000, 24);
	release("free", 0x1000, 25);
	alloc("_ZnwmSt11align_val_t", 0x1000, 14);
	release("_ZdlPvSt11align_val_t", 0x1000, 26);
	assert_int_equal(count(), 3);
	expect(0, MISUSE_MISMATCHED, 3, 10, 20, 0);
	expect(1, MISUSE_MISMATCHED, 1, 11, 21, 0);
	expect(2, MISUSE_MISMATCHED, 1, 12, 22, 0);
	assert_int_equal(heap_misuse_counts(heap).of[MISUSE_MISMATCHED], 5);
	assert_int_equal(heap_totals(heap).live_blocks, 0);
}

static bool is_even(const void *ctx, u64 stack)
{
	return ctx == &now_ns && stack % 2 == 0;
}

/* An allocator may release memory that it took unseen. A block that was seen is released in any case (T7). */
static void allocators_own(void **state)
{
	(void)state;
	assert_int_equal(heap_check(heap, true), 0);
	heap_check_own(heap, is_even, &now_ns);
	alloc("malloc", 0x1000, 10);
	release("free", 0x2000, 20);
	release("free", 0x1000, 22);
	assert_int_equal(count(), 0);
	assert_int_equal(heap_totals(heap).unknown_frees, 0);
	assert_int_equal(heap_totals(heap).live_blocks, 0);
	release("free", 0x3000, 21);
	assert_int_equal(count(), 1);
	expect(0, MISUSE_BAD_FREE, 1, 0, 21, 0);
}

static void doubles(void **state)
{
	(void)state;
	assert_int_equal(heap_check(heap, true), 0);
	alloc("malloc", 0x1000, 10);
	release("free", 0x1000, 20);
	release("free", 0x1000, 21);
	alloc("malloc", 0x1000, 11);
	resize(0x1000, 0x3000, 22);
	release("free", 0x1000, 23);
	resize(0x1000, 0x4000, 24);
	assert_int_equal(count(), 3);
	expect(0, MISUSE_DOUBLE, 1, 10, 21, 20);
	expect(1, MISUSE_DOUBLE, 1, 11, 23, 22);
	expect(2, MISUSE_BAD_REALLOC, 1, 11, 24, 22);
}

static void bad_ones(void **state)
{
	size_t nr;

	(void)state;
	assert_int_equal(heap_check(heap, true), 0);
	alloc("malloc", 0x1000, 10);
	release("free", 0x1008, 20);
	release("free", 0x9000, 21);
	resize(0x9100, 0xa000, 22);
	assert_int_equal(count(), 3);
	expect(0, MISUSE_BAD_FREE, 1, 10, 20, 0);
	assert_int_equal(heap_misuses(heap, &nr)->inside, 8);
	expect(1, MISUSE_BAD_FREE, 1, 0, 21, 0);
	expect(2, MISUSE_BAD_REALLOC, 1, 0, 22, 0);
	assert_int_equal(heap_totals(heap).unknown_frees, 3);
}

/* After an attach the block may be older. After lost events its allocation may be one of them. */
static void unknown_is_not_wrong(void **state)
{
	(void)state;
	assert_int_equal(heap_check(heap, false), 0);
	release("free", 0x1000, 20);
	assert_int_equal(count(), 0);
	assert_int_equal(heap_check(heap, true), 0);
	heap_check_gaps(heap);
	release("free", 0x2000, 20);
	assert_int_equal(count(), 0);
	assert_int_equal(heap_misuse_counts(heap).nr_unsure, 1);
	alloc("malloc", 0x1000, 10);
	release("_ZdlPv", 0x1000, 20);
	assert_int_equal(count(), 1);
}

static void not_asked_for(void **state)
{
	(void)state;
	alloc("malloc", 0x1000, 10);
	release("_ZdlPv", 0x1000, 20);
	release("free", 0x1000, 20);
	assert_int_equal(count(), 0);
	assert_false(heap_is_checked(heap));
}

static void families_of_one_function(void **state)
{
	u64 blurred[ALLOC_MAX_FNS / 64] = { 0 };
	u16 fn = alloc_fn_find(NULL, "free");

	(void)state;
	assert_int_equal(heap_check(heap, true), 0);
	blurred[fn / 64] |= 1ULL << fn % 64;
	heap_check_blur(heap, blurred);
	alloc("_Znwm", 0x1000, 10);
	release("free", 0x1000, 20);
	assert_int_equal(count(), 0);
	alloc("_Znwm", 0x1000, 10);
	release("_ZdaPv", 0x1000, 20);
	assert_int_equal(count(), 1);
}

static void sizes_and_alignments(void **state)
{
	size_t nr;

	(void)state;
	assert_int_equal(heap_check(heap, true), 0);
	for (int i = 0; i < 2; i++) {
		alloc("_Znwm", 0x1000, 10);
		event(EVENT_FREE, "_ZdlPvm", 0x1000, 0, 24, 20);
	}
	alloc("_Znam", 0x1000, 11);
	event(EVENT_FREE, "_ZdaPvm", 0x1000, 0, 32, 21);
	alloc("_Znwm", 0x1000, 12);
	release("_ZdlPvm", 0x1000, 22); /* by a recording without sizes */
	alloc("_ZnwmSt11align_val_t", 0x1000, 13);
	event(EVENT_FREE, "_ZdlPvm", 0x1000, 0, 32, 23);
	alloc("_Znam", 0x1000, 14);
	release("_ZdaPvSt11align_val_t", 0x1000, 24);
	/* One error is enough where the family is wrong. */
	alloc("malloc", 0x1000, 15);
	event(EVENT_FREE, "_ZdlPvmSt11align_val_t", 0x1000, 0, 8, 25);
	alloc("malloc", 0x1000, 16);
	resize(0x1000, 0x2000, 26);
	event(EVENT_FREE, "free_sized", 0x2000, 0, 64, 27);
	assert_int_equal(count(), 4);
	expect(0, MISUSE_SIZE, 2, 10, 20, 0);
	expect(1, MISUSE_ALIGNMENT, 1, 13, 23, 0);
	expect(2, MISUSE_ALIGNMENT, 1, 14, 24, 0);
	expect(3, MISUSE_MISMATCHED, 1, 15, 25, 0);
	assert_int_equal(heap_misuses(heap, &nr)[0].asked, 32);
	assert_int_equal(heap_misuses(heap, &nr)[0].said, 24);
}

static void aligned(u8 kind, const char *fn, taddr_t addr, u64 alignment, u64 stack)
{
	event(kind, fn, addr, alignment, 32, stack);
}

static void different_alignments(void **state)
{
	static const char new[] = "_ZnwmSt11align_val_t", delete[] = "_ZdlPvmSt11align_val_t";
	size_t nr;

	(void)state;
	assert_int_equal(heap_check(heap, true), 0);
	aligned(EVENT_ALLOC, new, 0x1000, 64, 10);
	aligned(EVENT_FREE, delete, 0x1000, 64, 20);
	aligned(EVENT_ALLOC, new, 0x1000, 64, 10);
	aligned(EVENT_FREE, delete, 0x1000, 32, 21);
	aligned(EVENT_ALLOC, new, 0x1000, 64, 10);
	aligned(EVENT_FREE, delete, 0x1000, ALIGNMENT_ZERO, 22);
	aligned(EVENT_ALLOC, new, 0x1000, 64, 10);
	aligned(EVENT_FREE, delete, 0x1000, 0, 23); /* by a recording without alignments */
	/* A caller that asks for different alignments: which one the block has is not known. */
	aligned(EVENT_ALLOC, new, 0x1000, 64, 11);
	aligned(EVENT_ALLOC, new, 0x2000, 128, 11);
	aligned(EVENT_FREE, delete, 0x1000, 64, 24);
	aligned(EVENT_FREE, delete, 0x2000, 32, 24);
	/* Nor which one an allocator makes of a bad one. */
	aligned(EVENT_ALLOC, new, 0x1000, 48, 12);
	aligned(EVENT_FREE, delete, 0x1000, 64, 25);
	/* The free of C takes all. */
	aligned(EVENT_ALLOC, "aligned_alloc", 0x1000, 64, 13);
	release("free", 0x1000, 26);
	aligned(EVENT_ALLOC, "aligned_alloc", 0x1000, 64, 13);
	aligned(EVENT_FREE, "free_aligned_sized", 0x1000, 128, 27);
	assert_int_equal(count(), 3);
	expect(0, MISUSE_ALIGNMENT, 1, 10, 21, 0);
	expect(1, MISUSE_ALIGNMENT, 1, 10, 22, 0);
	expect(2, MISUSE_ALIGNMENT, 1, 13, 27, 0);
	assert_int_equal(heap_misuses(heap, &nr)[0].asked, 64);
	assert_int_equal(heap_misuses(heap, &nr)[0].said, 32);
	assert_int_equal(heap_misuses(heap, &nr)[1].said, 0);
	heap_taint(heap);
	aligned(EVENT_ALLOC, new, 0x1000, 64, 10);
	heap_taint(heap);
	aligned(EVENT_FREE, delete, 0x1000, 32, 28);
	assert_int_equal(count(), 3);
	assert_int_equal(heap_misuse_counts(heap).nr_unsure, 1);
}

static void bad_alignments(void **state)
{
	(void)state;
	assert_int_equal(heap_check(heap, true), 0);
	aligned(EVENT_ALLOC, "aligned_alloc", 0x1000, 64, 10);
	aligned(EVENT_ALLOC, "posix_memalign", 0x2000, 4, 10); /* a 32-bit program may */
	aligned(EVENT_ALLOC, "aligned_alloc", 0, 4, 10);
	assert_int_equal(heap_notices(heap)[NOTICE_BAD_ALIGNMENT].count, 0);
	aligned(EVENT_ALLOC, "memalign", 0x3000, 48, 11);
	aligned(EVENT_ALLOC, "aligned_alloc", 0x4000, ALIGNMENT_ZERO, 12);
	aligned(EVENT_ALLOC, "posix_memalign", 0, 4, 13);
	aligned(EVENT_ALLOC, "_ZnwmSt11align_val_t", 0, 24, 14);
	/* The word is the old block of a realloc. */
	resize(0x1000, 0x1008, 15);
	assert_int_equal(heap_notices(heap)[NOTICE_BAD_ALIGNMENT].count, 4);
	assert_int_equal(heap_row_get(heap, heap_notices(heap)[NOTICE_BAD_ALIGNMENT].row).stack, 11);
	assert_int_equal(count(), 0);
}

/* The release of the first block and the second block itself may have been lost. */
static void sizes_after_losses(void **state)
{
	(void)state;
	assert_int_equal(heap_check(heap, true), 0);
	alloc("_Znwm", 0x1000, 10);
	heap_taint(heap);
	event(EVENT_FREE, "_ZdlPvm", 0x1000, 0, 24, 20);
	assert_int_equal(count(), 0);
	assert_int_equal(heap_misuse_counts(heap).nr_unsure, 1);
	alloc("_Znwm", 0x1000, 10);
	event(EVENT_FREE, "_ZdlPvm", 0x1000, 0, 24, 20);
	assert_int_equal(count(), 1);
}

static void bounded(void **state)
{
	(void)state;
	assert_int_equal(heap_check(heap, true), 0);
	for (u64 i = 0; i < MISUSE_MAX + 50; i++) {
		alloc("malloc", 0x1000, 10);
		release("_ZdlPv", 0x1000, 1000 + i);
	}
	assert_int_equal(count(), MISUSE_MAX);
	assert_int_equal(heap_misuse_counts(heap).nr_dropped, 50);
	assert_int_equal(heap_misuse_counts(heap).of[MISUSE_MISMATCHED], MISUSE_MAX + 50);
	/* An old release is forgotten, but its block is not live either. */
	for (u64 i = 0; i < 300000; i++) {
		alloc("malloc", 0x100000 + i * 16, 10);
		release("free", 0x100000 + i * 16, 20);
	}
	release("free", 0x1000, 30);
	assert_int_equal(
		heap_misuse_counts(heap).of[MISUSE_BAD_FREE] + heap_misuse_counts(heap).of[MISUSE_DOUBLE], 1);
}

static void copies(void **state)
{
	struct heap *copy, *original = heap;

	(void)state;
	assert_int_equal(heap_check(heap, true), 0);
	alloc("malloc", 0x1000, 10);
	release("free", 0x1000, 20);
	release("free", 0x1000, 21);
	assert_int_equal(heap_clone(&copy, heap), 0);
	heap = copy;
	/* A child has wrong releases of its own, but knows the releases of its parent. */
	assert_int_equal(count(), 0);
	release("free", 0x1000, 22);
	expect(0, MISUSE_DOUBLE, 1, 10, 22, 20);
	heap_free(heap);
	heap = original;
	assert_int_equal(count(), 1);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(mismatches),
		TEST(allocators_own),
		TEST(doubles),
		TEST(bad_ones),
		TEST(unknown_is_not_wrong),
		TEST(not_asked_for),
		TEST(families_of_one_function),
		TEST(sizes_and_alignments),
		TEST(sizes_after_losses),
		TEST(different_alignments),
		TEST(bad_alignments),
		TEST(bounded),
		TEST(copies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which calls count where blocks are sampled. The number of bytes up to the next sample is set, so that nothing is left
 * to chance. Each test runs twice, as those of the life of a call.
 */
#include "tests/unit/life_calls.h"

enum { MEAN = 1 << 20, FAR = 1000000 };

/* The next sample is @left bytes away, and those behind it are far away. */
static struct world sampling(void **state, u64 left)
{
	struct world w = new_world(state);

	w.mean = MEAN;
	w.next_number = 1ULL << 62;
	w.thread.mean = MEAN;
	w.thread.left = left;
	return w;
}

static void malloc_of(struct world *w, u64 size, u64 addr)
{
	enter(w, MALLOC, top, CODE, size, 0);
	leave(w, MALLOC, top, addr);
}

static void realloc_of(struct world *w, u64 old, u64 size, u64 addr)
{
	enter(w, REALLOC, top, CODE, old, size);
	enter(w, MALLOC, top - 16, LIBRARY + 5000, size, 0);
	leave(w, MALLOC, top - 16, addr);
	if (addr)
		enter(w, FREE, top - 16, LIBRARY + 5010, old, 0);
	leave(w, REALLOC, top, addr);
	assert_int_equal(w->thread.nr, 0);
}

static void free_of(struct world *w, u64 addr)
{
	enter(w, FREE, top, CODE + 9, addr, 0);
}

/* A block counts its bytes, and one more; its release counts if it is sampled. */
static void samples_malloc(void **state)
{
	struct world w = sampling(state, 100);

	malloc_of(&w, 40, 0x1000);
	assert_int_equal(w.thread.left, 59);
	assert_int_equal(w.thread.nr, 0);
	malloc_of(&w, 58, 0x2000);
	assert_int_equal(w.thread.left, 0);
	free_of(&w, 0x1000);
	assert_int_equal(w.nr_events, 0);
	malloc_of(&w, 0, 0x1000);
	assert_true(w.thread.left > FAR);
	assert_int_equal(w.nr_events, 1);
	check(&w, 0, EVENT_ALLOC, 1, 0x1000, 0);
	assert_int_equal(w.events[0].h.distance, 20);
	free_of(&w, 0x2000);
	free_of(&w, 0x1000);
	free_of(&w, 0x1000);
	assert_int_equal(w.nr_events, 2);
	check(&w, 1, EVENT_FREE, 5, 0x1000, 0);
}

/* A block is temporary if its thread has allocated nothing since, sampled or not. */
static void samples_temporary(void **state)
{
	struct world w = sampling(state, 10);

	malloc_of(&w, 40, 0x1000);
	free_of(&w, 0x1000);
	assert_int_equal(w.events[1].h.flags, EVENT_TEMPORARY);
	w.thread.left = 10;
	malloc_of(&w, 40, 0x1000);
	malloc_of(&w, 40, 0x2000);
	free_of(&w, 0x1000);
	assert_int_equal(w.nr_events, 4);
	assert_int_equal(w.events[3].h.flags, 0);
}

/* The bytes of a request count once, whatever other functions it calls; of calloc these are the product. */
static void samples_inner(void **state)
{
	struct world w = sampling(state, 1000);

	enter(&w, CALLOC, top, CODE, 10, 6);
	enter(&w, MALLOC, top - 32, LIBRARY + CALLOC * 256 + 20, 60, 0);
	leave(&w, MALLOC, top - 32, 0x1000);
	leave(&w, CALLOC, top, 0x1000);
	assert_int_equal(w.thread.left, 1000 - 61);
	realloc_of(&w, 0x1000, 100, 0x2000);
	assert_int_equal(w.thread.left, 1000 - 61 - 101);
	enter(&w, MEMALIGN, top, CODE, 64, 100);
	leave(&w, MEMALIGN, top, 0x1000);
	enter(&w, NEW, top, CODE, 50, 0);
	enter(&w, MALLOC, top - 16, LIBRARY + NEW * 256 + 9, 50, 0);
	leave(&w, MALLOC, top - 16, 0x3000);
	assert_int_equal(w.thread.left, 1000 - 61 - 101 - 101 - 51);
	assert_int_equal(w.thread.nr, 0);
	assert_int_equal(w.nr_events, 0);
}

/* Of a realloc the old block, the new one, both or none may be sampled. One that fails leaves the old block. */
static void samples_realloc(void **state)
{
	struct world w = sampling(state, 10);

	malloc_of(&w, 40, 0x1000);
	realloc_of(&w, 0x1000, 200, 0);
	check(&w, 1, EVENT_REALLOC_BEGIN, 3, 0, 200);
	check(&w, 2, EVENT_REALLOC_END, 3, 0, 200);
	realloc_of(&w, 0x1000, 200, 0x2000);
	check(&w, 4, EVENT_REALLOC_END, 3, 0x2000, 200);
	assert_int_equal(w.events[4].h.flags, EVENT_UNSAMPLED);
	assert_int_equal(w.events[4].old_addr, 0x1000);
	realloc_of(&w, 0x2000, 300, 0x3000);
	assert_int_equal(w.nr_events, 5);
	w.thread.left = 10;
	realloc_of(&w, 0x3000, 400, 0x4000);
	assert_int_equal(w.nr_events, 6);
	check(&w, 5, EVENT_REALLOC_END, 3, 0x4000, 400);
	assert_int_equal(w.events[5].old_addr, 0);
	w.thread.left = 10;
	realloc_of(&w, 0x4000, 500, 0x5000);
	assert_int_equal(w.nr_events, 8);
	assert_int_equal(w.events[7].old_addr, 0x4000);
	assert_int_equal(w.events[7].h.flags, 0);
	free_of(&w, 0x5000);
	assert_int_equal(w.nr_events, 9);
}

/* A size that no call gets is recorded, and counts no bytes. A full table of blocks is a loss. */
static void samples_odd(void **state)
{
	struct world w = sampling(state, 100);

	malloc_of(&w, 1ULL << 50, 0);
	check(&w, 0, EVENT_ALLOC, 1, 0, 1ULL << 50);
	for (u64 i = 1; i <= 5; i++) {
		w.thread.left = 10;
		malloc_of(&w, 100, i << 12);
	}
	assert_int_equal(w.nr_events, 5);
	assert_int_equal(w.losses[CALL_LOSS_ALLOC], 1);
	/* A thread whose distance was not drawn yet. */
	memset(&w.thread, 0, sizeof(w.thread));
	malloc_of(&w, 100, 0x9000);
	assert_int_equal(w.thread.mean, MEAN);
	assert_int_equal(w.nr_events, 5);
	/* A request that does not count is not lost where its end is not seen. */
	enter(&w, CALLOC, top - 64, CODE, 1, 8);
	malloc_of(&w, 100, 0x9000);
	assert_int_equal(w.losses[CALL_LOSS_ABANDONED], 0);
}

/* A distance of 1 byte: each call counts. */
static void samples_all(void **state)
{
	struct world w = sampling(state, 0);

	w.mean = w.thread.mean = 1;
	malloc_of(&w, 0, 0x1000);
	realloc_of(&w, 0x1000, 0, 0x2000);
	free_of(&w, 0x2000);
	assert_int_equal(w.nr_events, 4);
}

int main(void)
{
	static bool plain = false, exchanged = true;
#define BOTH(f)                                                                                              \
	{ #f, f, NULL, NULL, &plain },                                                                       \
	{                                                                                                    \
#f " with trampolines", f, NULL, NULL, &exchanged                                            \
	}
	const struct CMUnitTest tests[] = {
		BOTH(samples_malloc),  BOTH(samples_temporary), BOTH(samples_inner),
		BOTH(samples_realloc), BOTH(samples_odd),	BOTH(samples_all),
	};
#undef BOTH

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The life of a call: a thread of no process goes through its allocator, and the events must be those of its requests.
 * Each test runs twice: with a stack that nobody changes, as by ptrace, and with trampolines, as by uretprobes.
 */
#include "tests/unit/life_calls.h"

static void calls_malloc_free(void **state)
{
	struct world w = new_world(state);

	enter(&w, MALLOC, top, CODE, 40, 0);
	leave(&w, MALLOC, top, 0x1000);
	enter(&w, FREE, top, CODE + 9, 0x1000, 0);
	enter(&w, FREE, top, CODE + 18, 0, 0);
	assert_int_equal(w.nr_events, 2);
	check(&w, 0, EVENT_ALLOC, 1, 0x1000, 40);
	assert_int_equal(w.events[0].stack, STACK_ID + 1);
	check(&w, 1, EVENT_FREE, 5, 0x1000, 0);
	assert_int_equal(w.events[1].h.flags, EVENT_TEMPORARY);
	assert_int_equal(w.events[1].stack, STACK_NONE);
	assert_int_equal(w.thread.nr, 0);
}

static void calls_memalign(void **state)
{
	struct world w = new_world(state);

	enter(&w, MEMALIGN, top, CODE, 64, 100);
	leave(&w, MEMALIGN, top, 0x1000);
	enter(&w, MEMALIGN, top, CODE, 0, 100);
	leave(&w, MEMALIGN, top, 0);
	/* Not the alignment of the call before. */
	enter(&w, MALLOC, top, CODE, 40, 0);
	leave(&w, MALLOC, top, 0x2000);
	enter(&w, FREE, top, CODE + 9, 0x1000, 0);
	assert_int_equal(w.nr_events, 4);
	check(&w, 0, EVENT_ALLOC, 8, 0x1000, 100);
	assert_int_equal(w.events[0].alignment, 64);
	assert_int_equal(w.events[1].alignment, ALIGNMENT_ZERO);
	assert_int_equal(w.events[2].alignment, 0);
	assert_int_equal(w.events[3].alignment, 0);
}

/* Overflow of nmemb * size; a malloc called by calloc, and one that it jumps to. */
static void calls_calloc(void **state)
{
	struct world w = new_world(state);

	enter(&w, CALLOC, top, CODE, 10, 6);
	enter(&w, MALLOC, top - 32, LIBRARY + CALLOC * 256 + 20, 60, 0);
	leave(&w, MALLOC, top - 32, 0x1000);
	leave(&w, CALLOC, top, 0x1000);
	enter(&w, CALLOC, top, CODE, 1ULL << 40, 1ULL << 40);
	leave(&w, CALLOC, top, 0);
	enter(&w, CALLOC, top, CODE, 2, 8);
	jump(&w, MALLOC, top, 16, 0);
	leave(&w, MALLOC, top, 0x2000);
	leave(&w, CALLOC, top, 0x2000);
	assert_int_equal(w.nr_events, 3);
	check(&w, 0, EVENT_ALLOC, 2, 0x1000, 60);
	check(&w, 1, EVENT_ALLOC, 2, 0, ~0ULL);
	check(&w, 2, EVENT_ALLOC, 2, 0x2000, 16);
}

static void calls_realloc(void **state)
{
	struct world w = new_world(state);

	enter(&w, REALLOC, top, CODE, 0x1000, 50);
	enter(&w, MALLOC, top - 16, LIBRARY + 5000, 50, 0);
	leave(&w, MALLOC, top - 16, 0x2000);
	enter(&w, FREE, top - 16, LIBRARY + 5010, 0x1000, 0);
	leave(&w, REALLOC, top, 0x2000);
	assert_int_equal(w.nr_events, 2);
	check(&w, 0, EVENT_REALLOC_BEGIN, 3, 0, 50);
	check(&w, 1, EVENT_REALLOC_END, 3, 0x2000, 50);
	assert_int_equal(w.events[1].old_addr, 0x1000);
	/* The end does not fit: the release of the old block is lost, too. */
	enter(&w, REALLOC, top, CODE, 0x2000, 60);
	w.is_full = true;
	leave(&w, REALLOC, top, 0x3000);
	assert_int_equal(w.losses[CALL_LOSS_ALLOC], 1);
	assert_int_equal(w.losses[CALL_LOSS_FREE], 1);
	/* A beginning that does not fit is no loss. */
	enter(&w, REALLOC, top, CODE, 0x3000, 60);
	assert_int_equal(w.losses[CALL_LOSS_ALLOC] + w.losses[CALL_LOSS_FREE], 2);
}

static void calls_out(void **state)
{
	struct world w = new_world(state);

	w.out = 0x4000;
	enter(&w, OUT, top, CODE, 8, 64);
	leave(&w, OUT, top, 0);
	enter(&w, OUT, top, CODE, 8, 64);
	leave(&w, OUT, top, ENOMEM);
	check(&w, 0, EVENT_ALLOC, 4, 0x4000, 300);
	check(&w, 1, EVENT_ALLOC, 4, 0, 300);
}

/* Releases at the end of a heap are within it, also the last one, to which it jumps (T7). */
static void calls_end_of_heap(void **state)
{
	struct world w = new_world(state);

	enter(&w, END_HEAP, top, CODE, 0x5000, 0);
	enter(&w, FREE, top - 32, LIBRARY + END_HEAP * 256 + 20, 0x1000, 0);
	enter(&w, FREE, top - 32, LIBRARY + 5000, 0x5000, 0);
	jump(&w, FREE, top, 0x2000, 0);
	leave(&w, END_HEAP, top, 0);
	assert_int_equal(w.nr_events, 3);
	check(&w, 0, EVENT_FREE, 14, 0x5000, 0);
	assert_int_equal(w.events[0].h.flags, 0);
	check(&w, 1, EVENT_FREE, 5, 0x1000, 0);
	assert_int_equal(w.events[1].h.flags, EVENT_WITHIN);
	check(&w, 2, EVENT_FREE, 5, 0x2000, 0);
	assert_int_equal(w.events[2].h.flags, EVENT_WITHIN);
	enter(&w, FREE, top, CODE, 0x3000, 0);
	assert_int_equal(w.events[3].h.flags, 0);
	/* Whatever is where an argument would be. */
	enter(&w, END_THREAD, top, CODE, 0, 0);
	enter(&w, FREE, top - 32, LIBRARY + END_THREAD * 256 + 20, 0x1000, 0);
	leave(&w, END_THREAD, top, 0);
	assert_int_equal(w.nr_events, 6);
	check(&w, 4, EVENT_FREE, 16, top, 0);
	check(&w, 5, EVENT_FREE, 5, 0x1000, 0);
	assert_int_equal(w.events[5].h.flags, EVENT_WITHIN);
}

/* A buffer of the caller is no block, and no failure (T7). */
static void calls_with_buffer(void **state)
{
	struct world w = new_world(state);

	enter(&w, PATH, top, CODE, 0x9000, 0x7000);
	leave(&w, PATH, top, 0x7000);
	assert_int_equal(w.nr_events, 0);
	enter(&w, PATH, top, CODE, 0x9000, 0x7000);
	leave(&w, PATH, top, 0);
	enter(&w, PATH, top, CODE, 0x9000, 0);
	leave(&w, PATH, top, 0x1000);
	assert_int_equal(w.nr_events, 2);
	check(&w, 0, EVENT_ALLOC, 15, 0, 0);
	check(&w, 1, EVENT_ALLOC, 15, 0x1000, 0);
	/* A path of libc is copied. */
	enter(&w, PATH, top, CODE, 0x9000, 0);
	enter(&w, MALLOC, top - 64, CODE + 900, 4096, 0);
	leave(&w, MALLOC, top - 64, 0x2000);
	enter(&w, MALLOC, top - 32, LIBRARY + PATH * 256 + 20, 5, 0);
	leave(&w, MALLOC, top - 32, 0x3000);
	enter(&w, FREE, top - 32, LIBRARY + PATH * 256 + 40, 0x2000, 0);
	leave(&w, PATH, top, 0x3000);
	assert_int_equal(w.nr_events, 5);
	check(&w, 2, EVENT_ALLOC, 1, 0x2000, 4096);
	check(&w, 3, EVENT_FREE, 5, 0x2000, 0);
	check(&w, 4, EVENT_ALLOC, 15, 0x3000, 0);
	assert_int_equal(w.thread.nr + w.thread.nr_held, 0);
}

/* -1 is the result of a failed mmap. */
static void calls_mappings(void **state)
{
	struct world w = new_world(state);

	enter(&w, MAP, top, CODE, 0, 4096);
	leave(&w, MAP, top, 0x10000);
	enter(&w, REMAP, top, CODE, 0x10000, 4096);
	leave(&w, REMAP, top, ~0ULL);
	enter(&w, UNMAP, top, CODE, 0x10000, 4096);
	assert_int_equal(w.nr_events, 4);
	check(&w, 0, EVENT_ALLOC, 9, 0x10000, 4096);
	check(&w, 1, EVENT_REALLOC_BEGIN, 10, 0, 300);
	check(&w, 2, EVENT_REALLOC_END, 10, 0, 300);
	check(&w, 3, EVENT_FREE, 11, 0x10000, 4096);
	assert_int_equal(w.events[3].h.flags, EVENT_UNMAP);
}

/* The malloc inside tells the result; one that fails may be tried again, as new_handler does. */
static void calls_new(void **state)
{
	const u64 body = LIBRARY + NEW * 256 + 10;
	struct world w = new_world(state);

	enter(&w, NEW, top, CODE, 24, 0);
	enter(&w, MALLOC, top - 24, body, 24, 0);
	leave(&w, MALLOC, top - 24, 0);
	enter(&w, MALLOC, top - 24, body, 24, 0);
	leave(&w, MALLOC, top - 24, 0x5000);
	assert_int_equal(w.nr_events, 2);
	check(&w, 0, EVENT_ALLOC, 6, 0, 24);
	check(&w, 1, EVENT_ALLOC, 6, 0x5000, 24);
	assert_int_equal(w.events[1].h.flags, EVENT_RETRY);
	assert_int_equal(w.thread.nr, 0);
	enter(&w, DELETE, top, CODE, 0x5000, 24);
	enter(&w, FREE, top - 24, LIBRARY + DELETE * 256 + 10, 0x5000, 0);
	assert_int_equal(w.nr_events, 3);
	check(&w, 2, EVENT_FREE, 7, 0x5000, 24);
	assert_int_equal(w.thread.nr, 0);
}

/* Operators that jump: new to malloc, which jumps on; delete to free. */
static void calls_jumping_operators(void **state)
{
	struct world w = new_world(state);

	enter(&w, NEW, top, CODE, 24, 0);
	jump(&w, MALLOC, top, 24, 0);
	jump(&w, MEMALIGN, top, 16, 24);
	leave(&w, MEMALIGN, top, 0x5000);
	leave(&w, MALLOC, top, 0x5000);
	assert_int_equal(w.nr_events, 1);
	check(&w, 0, EVENT_ALLOC, 6, 0x5000, 24);
	enter(&w, DELETE, top, CODE + 30, 0x5000, 0);
	jump(&w, FREE, top, 0x5000, 0);
	assert_int_equal(w.nr_events, 2);
	check(&w, 1, EVENT_FREE, 7, 0x5000, 0);
	assert_int_equal(w.thread.nr, 0);
}

/* A call of malloc from inside an operator of the program. */
static void malloc_inside(struct world *w, u64 sp, u64 size, u64 addr)
{
	enter(w, MALLOC, sp, CODE + 500, size, 0);
	leave(w, MALLOC, sp, addr);
}

/* Operators of the program keep a header before the block, and blocks of their own in a list. */
static void calls_own_operators(void **state)
{
	struct world w = new_world(state);

	enter(&w, OWN_NEW, top, CODE, 100, 0);
	malloc_inside(&w, top - 64, 24, 0x1000);
	malloc_inside(&w, top - 32, 116, 0x2000);
	malloc_inside(&w, top - 64, 25, 0x3000);
	malloc_inside(&w, top - 64, 26, 0x4000);
	enter(&w, FREE, top - 64, CODE + 600, 0x4000, 0);
	leave(&w, OWN_NEW, top, 0x2010);
	assert_int_equal(w.nr_events, 5);
	check(&w, 0, EVENT_ALLOC, 1, 0x4000, 26);
	check(&w, 1, EVENT_FREE, 5, 0x4000, 0);
	check(&w, 2, EVENT_ALLOC, 1, 0x1000, 24);
	check(&w, 3, EVENT_ALLOC, 1, 0x3000, 25);
	check(&w, 4, EVENT_ALLOC, 12, 0x2010, 100);
	/* The header's block is not known to anybody: heaps pass over this release. */
	enter(&w, OWN_DELETE, top, CODE, 0x2010, 0);
	enter(&w, FREE, top - 32, CODE + 700, 0x1000, 0);
	enter(&w, FREE, top - 32, CODE + 700, 0x2000, 0);
	leave(&w, OWN_DELETE, top, 0);
	assert_int_equal(w.nr_events, 8);
	check(&w, 5, EVENT_FREE, 13, 0x2010, 0);
	check(&w, 6, EVENT_FREE, 5, 0x1000, 0);
	check(&w, 7, EVENT_FREE, 5, 0x2000, 0);
	assert_int_equal(w.events[6].h.flags, EVENT_WITHIN);
	assert_int_equal(w.thread.nr + w.thread.nr_held, 0);
}

/* More blocks than are held; an exception; a pool, whose first block is not at its beginning. */
static void calls_own_operators_odd(void **state)
{
	struct world w = new_world(state);

	enter(&w, OWN_NEW, top, CODE, 100, 0);
	for (u64 i = 1; i <= 6; i++)
		malloc_inside(&w, top - 64, i, 0x1000 * i);
	malloc_inside(&w, top - 32, 0, 0);
	assert_int_equal(w.nr_events, 2);
	enter(&w, MALLOC, top + 32, CODE, 7, 0);
	assert_int_equal(w.nr_events, 7);
	check(&w, 2, EVENT_ALLOC, 12, 0, 100);
	leave(&w, MALLOC, top + 32, 0x8000);
	check(&w, 7, EVENT_ALLOC, 1, 0x8000, 7);
	enter(&w, OWN_NEW, top, CODE, 100, 0);
	malloc_inside(&w, top - 64, 65536, 0x100000);
	leave(&w, OWN_NEW, top, 0x100040);
	check(&w, 8, EVENT_ALLOC, 1, 0x100000, 65536);
	check(&w, 9, EVENT_ALLOC, 12, 0x100040, 100);
	assert_int_equal(w.thread.nr + w.thread.nr_held, 0);
}

/* The library's operator asks the program's, by a call or a jump, whose result is its own. */
static void calls_own_in_library(void **state)
{
	struct world w = new_world(state);

	for (u64 depth = 0; depth <= 24; depth += 24) {
		w.nr_events = 0;
		enter(&w, NEW, top, CODE, 50, 0);
		if (depth)
			enter(&w, OWN_NEW, top - depth, LIBRARY + NEW * 256 + 10, 50, 0);
		else
			jump(&w, OWN_NEW, top, 50, 0);
		malloc_inside(&w, top - 64, 24, 0x1000);
		malloc_inside(&w, top - 64, 50, 0x2000);
		leave(&w, OWN_NEW, top - depth, 0x2000);
		assert_int_equal(w.nr_events, 2);
		check(&w, 0, EVENT_ALLOC, 1, 0x1000, 24);
		check(&w, 1, EVENT_ALLOC, 6, 0x2000, 50);
		enter(&w, DELETE, top, CODE, 0x2000, 0);
		enter(&w, OWN_DELETE, top - 24, LIBRARY + DELETE * 256 + 10, 0x2000, 0);
		enter(&w, FREE, top - 64, CODE + 700, 0x1000, 0);
		enter(&w, FREE, top - 64, CODE + 700, 0x2000, 0);
		leave(&w, OWN_DELETE, top - 24, 0);
		assert_int_equal(w.nr_events, 4);
		check(&w, 2, EVENT_FREE, 7, 0x2000, 0);
		check(&w, 3, EVENT_FREE, 5, 0x1000, 0);
		assert_int_equal(w.thread.nr + w.thread.nr_held, 0);
	}
}

/* The C library frees a block for itself: no request of the program's. */
static void calls_internal_free(void **state)
{
	struct world w = new_world(state);
	const struct call c = { &w };

	w.sp = top + 8;
	life_internal_call(&c, &w.thread, FREE, &probes[FREE]);
	enter(&w, FREE, top, LIBRARY + 6000, 0x1000, 0);
	assert_int_equal(w.nr_events, 0);
	assert_int_equal(w.thread.nr, 0);
	enter(&w, FREE, top, CODE, 0x1000, 0);
	assert_int_equal(w.nr_events, 1);
}

/* longjmp out of malloc, an exception out of new: the next call from above shows it. */
static void calls_jumps(void **state)
{
	struct world w = new_world(state);

	enter(&w, MALLOC, top - 128, CODE, 10, 0);
	enter(&w, MALLOC, top, CODE + 50, 20, 0);
	leave(&w, MALLOC, top, 0x6000);
	assert_int_equal(w.losses[CALL_LOSS_ABANDONED], 1);
	enter(&w, NEW, top - 128, CODE, 30, 0);
	enter(&w, MALLOC, top, CODE + 50, 20, 0);
	leave(&w, MALLOC, top, 0x7000);
	assert_int_equal(w.losses[CALL_LOSS_ABANDONED], 1);
	check(&w, 1, EVENT_ALLOC, 6, 0, 30);
	assert_int_equal(w.nr_events, 3);
	/* The next call has the place of the abandoned one. */
	enter(&w, MALLOC, top, CODE, 10, 0);
	enter(&w, CALLOC, top, CODE + 70, 1, 40);
	leave(&w, CALLOC, top, 0x8000);
	assert_int_equal(w.losses[CALL_LOSS_ABANDONED], 2);
	check(&w, 3, EVENT_ALLOC, 2, 0x8000, 40);
}

/*
 * A jump out of an allocator of the program's own library, which then calls from farther down the stack: each call is
 * an event, or one loss. (T5)
 */
static void calls_left_above(void **state)
{
	enum { CALLS = 400 };
	static const u32 left[] = { MALLOC, REALLOC, MEMALIGN };

	for (size_t i = 0; i < ARRAY_SIZE(left); i++) {
		struct world w = new_world(state);
		const struct call c = { &w };

		enter(&w, left[i], top, CODE, 16, 32);
		w.nr_events = 0;
		for (u32 k = 0; k < CALLS; k++) {
			enter(&w, MALLOC, top - 64, LIBRARY + LIBRARY_BYTES - 16, 40, 0);
			leave(&w, MALLOC, top - 64, 0x1000);
		}
		assert_true(w.nr_events >= CALLS / 10);
		assert_int_equal(w.nr_events + w.losses[CALL_LOSS_ABANDONED], CALLS + 1);
		life_end(&c, &w.thread);
		assert_int_equal(w.nr_events + w.losses[CALL_LOSS_ABANDONED], CALLS + 1);
	}
}

/* As above, where so few calls follow that the jump shows only when the thread ends. (T5) */
static void calls_left_at_end(void **state)
{
	struct world w = new_world(state);
	const struct call c = { &w };

	enter(&w, MALLOC, top, CODE, 16, 0);
	for (u32 k = 0; k < 10; k++)
		enter(&w, FREE, top - 64, LIBRARY + LIBRARY_BYTES - 16, 0x1000, 0);
	assert_int_equal(w.nr_events, 0);
	life_end(&c, &w.thread);
	assert_int_equal(w.losses[CALL_LOSS_ABANDONED], 11);
}

/* A signal handler's malloc inside a malloc is a request of its own. */
static void calls_handler(void **state)
{
	struct world w = new_world(state);

	enter(&w, MALLOC, top, CODE, 10, 0);
	enter(&w, MALLOC, top - 200, CODE + 500, 20, 0);
	leave(&w, MALLOC, top - 200, 0x1000);
	leave(&w, MALLOC, top, 0x2000);
	check(&w, 0, EVENT_ALLOC, 1, 0x1000, 20);
	check(&w, 1, EVENT_ALLOC, 1, 0x2000, 10);
	assert_int_equal(w.losses[CALL_LOSS_ABANDONED], 0);
}

/* More at once than there is room for, and a thread that ends: all within bounds. */
static void calls_odd(void **state)
{
	struct world w = new_world(state);
	const struct call c = { &w };

	for (u64 sp = top; sp > top - 400; sp -= 40)
		enter(&w, MALLOC, sp, CODE + sp, 10, 0);
	assert_true(w.thread.nr <= INFLIGHT_LEVELS);
	life_end(&c, &w.thread);
	assert_int_equal(w.thread.nr, 0);
	assert_int_equal(w.losses[CALL_LOSS_ABANDONED], 10);
}

/* A random program: requests, and how its library carries them out. */
struct program {
	struct world *w;
	u32 seed;
	u32 nr_calls; /* each has a return address of its own */
	u32 nr_blocks;
	u32 depth; /* of signal handlers */
	/* The events of its requests, as they must be. */
	struct heap_event truth[MAX_EVENTS];
	size_t nr_truth;
};

static u32 pick(struct program *g, u32 below)
{
	g->seed = g->seed * 1664525 + 1013904223;
	return (g->seed >> 8) % below;
}

static void expect(struct program *g, u8 kind, u32 fn, u64 addr, u64 size)
{
	assert_true(g->nr_truth < MAX_EVENTS);
	g->truth[g->nr_truth++] =
		(struct heap_event){ .h.kind = kind, .h.fn = probes[fn].fn, .addr = addr, .size = size };
}

static void request(struct program *g, u64 sp);

/* A signal handler may come while the library works, and allocate. */
static void interrupt(struct program *g, u64 sp)
{
	if (g->depth == 2 || pick(g, 6))
		return;
	g->depth++;
	request(g, sp - 256);
	g->depth--;
}

/* The functions that end a chain: they ask nobody. Its result, at times none. */
static u64 allocate(struct program *g, u32 fn, u64 sp)
{
	u64 addr = pick(g, 8) ? 0x100000 + 64ULL * ++g->nr_blocks : 0;

	interrupt(g, sp);
	leave(g->w, fn, sp, addr);
	return addr;
}

/* From the body of @fn: a call of one that comes later in the chain, or a jump to it. The result. */
static u64 carry_out(struct program *g, u32 fn, u64 sp)
{
	u32 inner = fn == CALLOC && pick(g, 2) ? MALLOC : MEMALIGN;
	u64 addr;

	if (fn == MEMALIGN || !pick(g, 3))
		return allocate(g, fn, sp);
	if (pick(g, 2)) {
		jump(g->w, inner, sp, 1, 2);
		addr = carry_out(g, inner, sp);
	} else {
		interrupt(g, sp);
		enter(g->w, inner, sp - 32, LIBRARY + fn * 256 + 20, 1, 2);
		addr = carry_out(g, inner, sp - 32);
	}
	leave(g->w, fn, sp, addr);
	return addr;
}

static void request_new(struct program *g, u64 sp, u64 ret)
{
	u32 size = 1 + pick(g, 1000), nr_tries = 1 + pick(g, 3);
	bool is_jump = !pick(g, 3);
	u64 addr = 0;

	enter(g->w, NEW, sp, ret, size, 0);
	for (u32 i = 0; i < nr_tries && !addr; i++) {
		if (is_jump)
			jump(g->w, CALLOC, sp, 1, size);
		else
			enter(g->w, MALLOC, sp - 24, LIBRARY + NEW * 256 + 10, size, 0);
		addr = carry_out(g, is_jump ? CALLOC : MALLOC, is_jump ? sp : sp - 24);
		if (addr || !i)
			expect(g, EVENT_ALLOC, NEW, addr, size);
		if (is_jump)
			break;
	}
}

static void request_delete(struct program *g, u64 sp, u64 ret)
{
	u64 addr = 0x100000 + 64ULL * (1 + pick(g, g->nr_blocks + 1));

	expect(g, EVENT_FREE, DELETE, addr, 0);
	enter(g->w, DELETE, sp, ret, addr, 0);
	if (pick(g, 2))
		jump(g->w, FREE, sp, addr, 0);
	else
		enter(g->w, FREE, sp - 24, LIBRARY + DELETE * 256 + 10, addr, 0);
}

static void request_realloc(struct program *g, u64 sp, u64 ret)
{
	u64 old = 0x100000 + 64ULL * (1 + pick(g, g->nr_blocks + 1));
	u32 size = 1 + pick(g, 1000);
	u64 addr;

	expect(g, EVENT_REALLOC_BEGIN, REALLOC, 0, size);
	enter(g->w, REALLOC, sp, ret, old, size);
	enter(g->w, MALLOC, sp - 48, LIBRARY + REALLOC * 256 + 30, size, 0);
	addr = carry_out(g, MALLOC, sp - 48);
	if (addr)
		enter(g->w, FREE, sp - 48, LIBRARY + REALLOC * 256 + 40, old, 0);
	leave(g->w, REALLOC, sp, addr);
	expect(g, EVENT_REALLOC_END, REALLOC, addr, size);
}

static void request_plain(struct program *g, u64 sp, u64 ret)
{
	static const u32 fns[] = { MALLOC, CALLOC, MEMALIGN };
	u32 fn = fns[pick(g, 3)], size = 1 + pick(g, 1000);
	u64 addr;

	enter(g->w, fn, sp, ret, fn == MALLOC ? size : 1, size);
	addr = carry_out(g, fn, sp);
	expect(g, EVENT_ALLOC, fn, addr, size);
}

static void request(struct program *g, u64 sp)
{
	static void (*const requests[])(struct program * g, u64 sp, u64 ret) = {
		request_plain,
		request_realloc,
		request_new,
		request_delete,
	};

	requests[pick(g, 4)](g, sp, CODE + 16ULL * ++g->nr_calls);
}

/* The events are those of the requests, however the library is built, and however ends of calls are seen. */
static void calls_random(void **state)
{
	enum { PROGRAMS = 3000, REQUESTS = 12 };

	for (u32 i = 0; i < PROGRAMS; i++) {
		struct world w = new_world(state);
		struct program g = { .w = &w, .seed = i };

		for (u32 k = 0; k < REQUESTS; k++)
			request(&g, top - 8 * pick(&g, 40));
		assert_int_equal(w.nr_events, g.nr_truth);
		for (size_t k = 0; k < g.nr_truth; k++)
			check(&w, k, g.truth[k].h.kind, g.truth[k].h.fn, g.truth[k].addr, g.truth[k].size);
		assert_int_equal(w.losses[CALL_LOSS_ABANDONED], 0);
	}
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
		BOTH(calls_malloc_free),
		BOTH(calls_calloc),
		BOTH(calls_memalign),
		BOTH(calls_realloc),
		BOTH(calls_out),
		BOTH(calls_end_of_heap),
		BOTH(calls_with_buffer),
		BOTH(calls_mappings),
		BOTH(calls_new),
		BOTH(calls_jumps),
		BOTH(calls_left_above),
		BOTH(calls_left_at_end),
		BOTH(calls_handler),
		BOTH(calls_jumping_operators),
		BOTH(calls_odd),
		BOTH(calls_random),
		BOTH(calls_internal_free),
		BOTH(calls_own_operators),
		BOTH(calls_own_operators_odd),
		BOTH(calls_own_in_library),
	};
#undef BOTH

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Callers that are folded for lack of memory: sums stay exact, whatever the order of events and folds. */
#include "user/heap/fold.h"

#include "tests/unit/books.h"
#include "user/heap/misuse.h"
#include "user/heap/slices.h"
#include "user/heap/stacks.h"

enum { NR_ADDRS = 400, DEPTH = 12, ROUNDS = 12, EVENTS = 3000 };

static u64 seed = 1;

static u32 any(u32 below)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (u32)(seed >> 20) % below;
}

struct world {
	struct stack_table *stacks;
	struct heap *heap;
	struct {
		u64 root, live_bytes; /* root: outermost frame of its caller */
	} blocks[NR_ADDRS];	      /* by address; 0 bytes: none */
	u64 nr_moved;
};

/* A new stack of random frames, below one of three outermost functions. */
static u64 add_stack(struct world *w, u32 root, u32 nr_ways)
{
	struct stack_event ev = { .h.kind = EVENT_STACK, .nr_frames = DEPTH, .end = STACK_COMPLETE };

	for (u32 i = 0; i < DEPTH - 1; i++)
		ev.ips[i] = 0x1000 * (i + 1) + any(nr_ways) * 16;
	ev.ips[DEPTH - 1] = 0x100 + root;
	ev.id = stack_event_id(&ev);
	assert_int_equal(stack_table_add(w->stacks, &ev, &(struct mapping_list){ 0 }), 0);
	return stack_canonical(w->stacks, ev.id);
}

static void alloc(struct world *w, u32 at, u32 root, u32 nr_ways)
{
	struct heap_event ev = event(EVENT_ALLOC, fn_malloc);

	ev.addr = BASE + at * 64;
	ev.size = 1 + any(60);
	ev.stack = add_stack(w, root, nr_ways);
	assert_int_equal(heap_event(w->heap, &ev), 0);
	w->blocks[at].root = root;
	w->blocks[at].live_bytes = ev.size;
}

static void release(struct world *w, u32 at)
{
	struct heap_event ev = event(EVENT_FREE, fn_free);

	ev.addr = BASE + at * 64;
	ev.stack = add_stack(w, any(3), 4);
	assert_int_equal(heap_event(w->heap, &ev), 0);
	w->blocks[at].live_bytes = 0;
}

static void moved(void *ctx, size_t heap, const u32 *to, size_t nr)
{
	struct world *w = ctx;

	assert_int_equal(heap, 0);
	for (size_t i = 0; i < nr; i++) {
		assert_true(to[i] <= i);
		assert_true(to[i] < heap_row_count(w->heap));
		w->nr_moved += to[i] != i;
	}
}

static void fold(struct world *w, u64 bytes, bool is_full)
{
	const struct fold_wish wish = { bytes, is_full };

	assert_int_equal(fold_callers(w->stacks, &w->heap, 1, &wish, moved, w), 0);
}

/* The outermost frame of a stack says whose it is, how ever short it has become; 3 = nothing is left of it. */
static u32 root_of(const struct stack *s)
{
	assert_non_null(s);
	return s->frames[s->nr_frames - 1].offset == STACK_FOLDED_OFFSET
		       ? 3
		       : (u32)s->frames[s->nr_frames - 1].offset - 0x100;
}

static int check_block(void *ctx, const struct heap_block *b)
{
	const struct world *w = ctx;
	u32 at = (u32)(b->addr - BASE) / 64,
	    root = root_of(stack_get(w->stacks, heap_row_get(w->heap, b->row).stack));

	assert_int_equal(b->size, w->blocks[at].live_bytes);
	assert_true(root == 3 || root == w->blocks[at].root);
	return 0;
}

static void check(const struct world *w)
{
	struct fold_counts folded = heap_folded(w->heap);
	u64 callers = 0;

	check_sums(w->heap, 0);
	assert_int_equal(heap_for_each_block(w->heap, check_block, (void *)w), 0);
	for (size_t i = 0; i < heap_row_count(w->heap); i++) {
		struct heap_row row = heap_row_get(w->heap, i);
		const struct stack *s = stack_get(w->stacks, row.stack);

		assert_non_null(s);
		assert_int_equal(row.nr_folded > 0, s->nr_frames && code_ref_is_folded(s->frames[0]));
		callers += row.nr_folded;
	}
	assert_int_equal(callers, folded.callers);
}

static void begin(struct world *w, bool has_all)
{
	*w = (struct world){ 0 };
	w->heap = new_heap();
	if (has_all) {
		assert_int_equal(heap_check(w->heap, true), 0);
		assert_int_equal(heap_keep_slices(w->heap), 0);
	}
	assert_int_equal(stack_table_new(&w->stacks), 0);
	stack_table_check_ids(w->stacks);
}

static void end(struct world *w)
{
	heap_free(w->heap);
	stack_table_free(w->stacks);
}

static int add_slice(void *ctx, u32 row, const struct slice_counts *counts)
{
	struct heap_row *sums = ctx;

	sums[row].allocs += counts->allocs;
	sums[row].frees += counts->frees;
	sums[row].alloc_bytes += counts->alloc_bytes;
	sums[row].live_bytes += (u64)counts->live_bytes;
	return 0;
}

/* The sums of a row over all slices are its counters. */
static void check_slices(const struct heap *h)
{
	size_t nr = heap_row_count(h);
	struct heap_row *sums = calloc(nr + 1, sizeof(*sums));
	u64 begin_ns;

	assert_non_null(sums);
	for (u32 i = 0; heap_slice(h, i, &begin_ns); i++)
		assert_int_equal(heap_slice_visit(h, i, add_slice, sums), 0);
	for (size_t i = 0; i < nr; i++) {
		struct heap_row row = heap_row_get(h, i);

		assert_int_equal(sums[i].allocs, row.allocs);
		assert_int_equal(sums[i].frees, row.frees);
		assert_int_equal(sums[i].alloc_bytes, row.alloc_bytes);
		assert_int_equal(sums[i].live_bytes, row.live_bytes);
	}
	free(sums);
}

/* Random events with a fold now and then: all numbers are those of the heap without folds (T2). */
static void sums_stay_exact(void **state)
{
	struct world w;

	(void)state;
	begin(&w, true);
	for (u32 round = 0; round < ROUNDS; round++) {
		struct heap_totals before;

		for (u32 i = 0; i < EVENTS; i++) {
			u32 at = any(NR_ADDRS);

			if (w.blocks[at].live_bytes)
				release(&w, at);
			else
				alloc(&w, at, any(3), round % 3 ? 4 : 40);
		}
		before = heap_totals(w.heap);
		fold(&w, 100000 * (1 + any(20)), round % 2);
		check(&w);
		check_slices(w.heap);
		assert_int_equal(before.allocs, heap_totals(w.heap).allocs);
		assert_int_equal(before.peak_bytes, heap_totals(w.heap).peak_bytes);
	}
	assert_true(heap_folded(w.heap).callers > 1000);
	assert_true(w.nr_moved > 1000);
	end(&w);
}

static u64 memory_of(const struct world *w)
{
	return stack_table_memory(w->stacks) + heap_memory(w->heap) +
	       heap_row_count(w->heap) * REPORT_ROW_BYTES;
}

/* As in a program that makes new stacks for ever: memory has a bound (T2). */
static void endless_stacks_have_a_bound(void **state)
{
	const u64 limit = 8 << 20;
	u64 most = 0;
	struct world w;

	(void)state;
	begin(&w, false);
	stack_table_set_limit(w.stacks, limit); /* of which ids that are led on take a part */
	alloc(&w, 0, 0, 1);
	for (u32 i = 0; i < 60000; i++) {
		u64 bytes;

		alloc(&w, 1, i % 3, 1 << 20);
		release(&w, 1);
		bytes = memory_of(&w);
		if (bytes > limit)
			fold(&w, bytes - limit + limit / 4, true);
		bytes = memory_of(&w);
		most = bytes > most ? bytes : most;
	}
	check(&w);
	assert_true(most < limit + limit / 8);
	assert_int_equal(heap_totals(w.heap).allocs, 60001);
	/* The caller with a live block is as it was. */
	assert_int_equal(heap_folded(w.heap).live_callers, 0);
	assert_int_equal(stack_get(w.stacks, heap_row_get(w.heap, 0).stack)->nr_frames, DEPTH);
	end(&w);
}

/* Events go on to name a stack that was folded; a recording still has it under its own id (T2). */
static void ids_of_folded_stacks_lead_on(void **state)
{
	struct world w;
	u64 kept, id;

	(void)state;
	begin(&w, true);
	alloc(&w, 0, 0, 1);
	kept = heap_row_get(w.heap, 0).stack;
	id = add_stack(&w, 0, 50);
	fold(&w, 1 << 20, false);
	assert_int_equal(stack_canonical(w.stacks, kept), kept);
	assert_int_not_equal(stack_canonical(w.stacks, id), id);
	assert_int_equal(stack_recorded(w.stacks, id), id);
	assert_true(code_ref_is_folded(stack_get(w.stacks, id)->frames[0]));
	assert_true(stack_get(w.stacks, id)->nr_frames <= DEPTH);
	end(&w);
}

/* A double release is told with all its callers, of which two were folded since (T2). */
static void mistakes_keep_their_callers(void **state)
{
	const struct misuse *m;
	struct world w;
	size_t nr;

	(void)state;
	begin(&w, true);
	alloc(&w, 0, 1, 50);
	release(&w, 0);
	fold(&w, 1 << 20, true);
	release(&w, 0);
	m = heap_misuses(w.heap, &nr);
	assert_int_equal(nr, 1);
	assert_int_equal(m->kind, MISUSE_DOUBLE);
	fold(&w, 1 << 20, true);
	m = heap_misuses(w.heap, &nr);
	assert_int_equal(heap_row_get(w.heap, m->alloc_row).allocs, 1);
	assert_int_equal(heap_row_get(w.heap, m->free_row).fn, fn_free);
	assert_int_equal(heap_row_get(w.heap, m->earlier_row).fn, fn_free);
	end(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sums_stay_exact),
		cmocka_unit_test(endless_stacks_have_a_bound),
		cmocka_unit_test(ids_of_folded_stacks_lead_on),
		cmocka_unit_test(mistakes_keep_their_callers),
	};

	return cmocka_run_group_tests(tests, find_functions, NULL);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of the heap: random events, against models that are too simple to be wrong. */
#include "tests/unit/books.h"

enum { NR_ADDRS = 40, NR_TIDS = 3, NR_ROWS = 6, NR_STEPS = 200000 };

struct model_block {
	bool is_live, is_unsure;
	u64 size, time_ns;
	u32 row; /* stack S + row / 2, malloc or realloc */
};

enum held { HELD_NOT, HELD_UNKNOWN, HELD_BLOCK, HELD_GONE };

struct model {
	struct heap_totals totals;
	struct heap_row rows[NR_ROWS];
	struct model_block blocks[NR_ADDRS];
	struct model_block held[NR_TIDS][NR_ADDRS];
	enum held state[NR_TIDS][NR_ADDRS];
	u64 frees_called, reallocs_called;
};

static struct model model;
static u64 random_state;

static u32 random_below(u32 n)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (random_state >> 16) % n;
}

static u64 row_stack(u32 row)
{
	return S + row / 2;
}

static u16 row_fn(u32 row)
{
	return row % 2 ? fn_realloc : fn_malloc;
}

static void model_free(struct model_block *b)
{
	b->is_live = false;
	model.totals.frees++;
	model.totals.live_bytes -= b->size;
	model.rows[b->row].frees++;
	model.rows[b->row].live_bytes -= b->size;
}

static void model_result(const struct heap_event *ev, u32 i, u32 row)
{
	struct model_block *b = &model.blocks[i];

	if (!ev->addr) {
		model.totals.failed_allocs++;
		return;
	}
	if (b->is_live) {
		model.totals.collisions++;
		model_free(b);
	}
	for (u32 tid = 0; tid < NR_TIDS; tid++)
		if (model.state[tid][i] == HELD_BLOCK) {
			model_free(&model.held[tid][i]);
			model.state[tid][i] = HELD_GONE;
		}
	*b = (struct model_block){
		.is_live = true, .size = ev->size, .time_ns = ev->time_ns / MS * MS, .row = row
	};
	model.totals.allocs++;
	model.totals.alloc_bytes += ev->size;
	model.totals.live_bytes += ev->size;
	model.rows[row].allocs++;
	model.rows[row].alloc_bytes += ev->size;
	model.rows[row].live_bytes += ev->size;
	if (model.totals.live_bytes <= model.totals.peak_bytes)
		return;
	model.totals.peak_bytes = model.totals.live_bytes;
	model.totals.peak_time_ns = ev->time_ns;
	for (u32 r = 0; r < NR_ROWS; r++)
		model.rows[r].peak_bytes = model.rows[r].live_bytes;
}

static void model_free_at(u32 i, bool is_temporary)
{
	struct model_block *b = &model.blocks[i];

	if (b->is_live) {
		model.totals.temporary += is_temporary;
		model.rows[b->row].temporary += is_temporary;
		model_free(b);
		return;
	}
	for (u32 tid = 0; tid < NR_TIDS; tid++)
		if (model.state[tid][i] == HELD_BLOCK) {
			model_free(&model.held[tid][i]);
			model.state[tid][i] = HELD_NOT;
			return;
		}
	model.totals.unknown_frees++;
}

static void model_begin(u32 tid, u32 i)
{
	struct model_block *b = &model.blocks[i];
	enum held *state = &model.state[tid][i];

	if (b->is_live) {
		model.held[tid][i] = *b;
		model.totals.unknown_frees += *state == HELD_UNKNOWN;
		*state = HELD_BLOCK;
		b->is_live = false;
	} else if (*state != HELD_BLOCK) {
		model.totals.unknown_frees += *state == HELD_UNKNOWN;
		*state = HELD_UNKNOWN;
	}
}

/* Enter in the model that the realloc @ev has freed its old block, or failed. */
static void model_settle(u32 tid, u32 i, bool has_failed)
{
	enum held state = model.state[tid][i];

	model.state[tid][i] = HELD_NOT;
	if (has_failed && state == HELD_BLOCK)
		model.blocks[i] = model.held[tid][i];
	else if (has_failed)
		model.totals.collisions += state == HELD_GONE;
	else if (state == HELD_BLOCK)
		model_free(&model.held[tid][i]);
	else if (state == HELD_UNKNOWN)
		model.totals.unknown_frees++;
	else if (state == HELD_NOT)
		model_free_at(i, false);
}

/* Enter one random event in heap and model. */
static void random_event(struct heap *h)
{
	struct heap_event ev = event(1 + random_below(4), 0);
	u32 i = random_below(NR_ADDRS);
	u32 old = random_below(NR_ADDRS);
	u32 tid = random_below(NR_TIDS);
	u32 row = random_below(NR_ROWS);

	ev.h.tid = tid;
	ev.h.fn = row_fn(row);
	ev.stack = row_stack(row);
	ev.addr = random_below(10) ? 0x1000 + i * 16 : 0;
	ev.size = random_below(500);
	if (ev.h.kind == EVENT_REALLOC_END || ev.h.kind == EVENT_REALLOC_BEGIN)
		ev.old_addr = random_below(10) ? 0x1000 + old * 16 : 0;
	if (ev.h.kind == EVENT_FREE && random_below(3) == 0)
		ev.h.flags = EVENT_TEMPORARY;
	if (random_below(50) == 0)
		heap_taint(h);
	heap_prefetch(h, &ev);
	assert_int_equal(heap_event(h, &ev), 0);

	if (ev.h.kind == EVENT_FREE && ev.addr)
		model_free_at(i, ev.h.flags & EVENT_TEMPORARY);
	if (ev.h.kind == EVENT_REALLOC_BEGIN && ev.old_addr)
		model_begin(tid, old);
	if (ev.h.kind == EVENT_REALLOC_END && ev.old_addr) {
		bool has_failed = !ev.addr && ev.size;

		/* a failure whose entry was not seen says nothing about the old block */
		if (!has_failed || model.state[tid][old] != HELD_NOT)
			model_settle(tid, old, has_failed);
		if (!ev.addr && !ev.size)
			return;
	}
	if (ev.h.kind == EVENT_ALLOC || ev.h.kind == EVENT_REALLOC_END)
		model_result(&ev, i, row);
}

static void compare_rows(const struct heap *h)
{
	for (u32 k = 0; k < heap_row_count(h); k++) {
		struct heap_row r = heap_row_get(h, k);
		u32 row = (r.stack - S) * 2 + (r.fn == fn_realloc);

		assert_int_equal(r.fn, row_fn(row));
		assert_int_equal(r.allocs, model.rows[row].allocs);
		assert_int_equal(r.frees, model.rows[row].frees);
		assert_int_equal(r.alloc_bytes, model.rows[row].alloc_bytes);
		assert_int_equal(r.live_bytes, model.rows[row].live_bytes);
		assert_int_equal(r.peak_bytes, model.rows[row].peak_bytes);
		assert_int_equal(r.temporary, model.rows[row].temporary);
	}
}

static void compare_totals(const struct heap *h)
{
	struct heap_totals t = heap_totals(h);

	assert_int_equal(t.allocs, model.totals.allocs);
	assert_int_equal(t.frees, model.totals.frees);
	assert_int_equal(t.alloc_bytes, model.totals.alloc_bytes);
	assert_int_equal(t.live_bytes, model.totals.live_bytes);
	assert_int_equal(t.peak_bytes, model.totals.peak_bytes);
	assert_int_equal(t.peak_time_ns, model.totals.peak_time_ns);
	assert_int_equal(t.temporary, model.totals.temporary);
	assert_int_equal(t.failed_allocs, model.totals.failed_allocs);
	assert_int_equal(t.unknown_frees, model.totals.unknown_frees);
	assert_int_equal(t.collisions, model.totals.collisions);
}

static void compare_blocks(const struct heap *h)
{
	for (u32 i = 0; i < NR_ADDRS; i++) {
		const struct model_block *b = &model.blocks[i];
		struct heap_block found;

		assert_int_equal(heap_find(h, 0x1000 + i * 16, &found), b->is_live);
		if (!b->is_live)
			continue;
		assert_int_equal(found.size, b->size);
		assert_int_equal(found.time_ns, b->time_ns);
		assert_int_equal(heap_row_get(h, found.row).stack, row_stack(b->row));
		assert_int_equal(heap_row_get(h, found.row).fn, row_fn(b->row));
	}
}

static void test_random(void **state)
{
	(void)state;
	random_state = 2463534242;
	for (u32 run = 0; run < 4; run++) {
		struct heap *h = new_heap();
		struct heap *copy;

		memset(&model, 0, sizeof(model));
		for (u32 step = 1; step <= NR_STEPS / 4; step++) {
			random_event(h);
			compare_totals(h);
			if (step % 50)
				continue;
			compare_blocks(h);
			compare_rows(h);
			check_sums(h, 0);
		}
		assert_int_equal(heap_clone(&copy, h), 0);
		compare_rows(copy);
		check_sums(copy, 0);
		heap_free(copy);
		heap_free(h);
	}
}

/* --- random mappings against an array of pages --- */

enum { NR_PAGES = 200, NR_MAPS = 20000 };

struct page {
	u32 map;       /* number, 0 = none */
	bool is_first; /* of its piece */
};

struct pages {
	struct page pages[NR_PAGES + 1]; /* the last one stays free */
	u32 nr_left[NR_MAPS + 1];	 /* pages of each mapping, also those that mremap took */
	u32 nr_maps;
	u64 frees;
};

static void pages_drop(struct pages *p, u32 first, u32 nr)
{
	for (u32 i = first; i < first + nr; i++) {
		u32 map = p->pages[i].map;

		p->pages[i].map = 0;
		if (map && --p->nr_left[map] == 0)
			p->frees++;
	}
	if (p->pages[first + nr].map)
		p->pages[first + nr].is_first = true;
}

static void pages_add(struct pages *p, u32 first, u32 nr)
{
	pages_drop(p, first, nr);
	p->nr_left[++p->nr_maps] = nr;
	for (u32 i = first; i < first + nr; i++)
		p->pages[i] = (struct page){ .map = p->nr_maps, .is_first = i == first };
}

/* mremap: take the piece from page @from on out, then add the result, unless the call failed (@nr = 0). */
static void random_mremap(struct heap *h, struct pages *p, u32 from, u32 to, u32 nr)
{
	struct page *old = &p->pages[from];
	u32 old_map = old->map;
	u32 nr_old = 0;

	do_begin(h, fn_mremap, 1, BASE + from * PAGE);
	if (nr)
		do_end(h, fn_mremap, 1, BASE + from * PAGE, BASE + to * PAGE, nr * PAGE);
	else
		do_end(h, fn_mremap, 1, BASE + from * PAGE, 0, PAGE);
	do {
		nr_old++;
	} while (old_map && old[nr_old].map == old_map && !old[nr_old].is_first);
	if (!nr) {
		old->is_first = true;
		return;
	}
	pages_drop(p, from, nr_old);
	pages_add(p, to, nr);
}

static void compare_pages(const struct heap *h, const struct pages *p)
{
	u64 nr_used = 0, nr_pieces = 0;

	for (u32 i = 0; i < NR_PAGES; i++) {
		struct heap_block b;
		bool is_start = p->pages[i].map && p->pages[i].is_first;

		nr_used += p->pages[i].map != 0;
		nr_pieces += is_start;
		assert_int_equal(heap_find(h, BASE + i * PAGE, &b), is_start);
	}
	assert_int_equal(heap_totals(h).live_bytes, nr_used * PAGE);
	assert_int_equal(heap_totals(h).allocs, p->nr_maps);
	assert_int_equal(heap_totals(h).frees, p->frees);
	check_sums(h, nr_pieces - heap_totals(h).live_blocks);
}

static void test_random_mappings(void **state)
{
	struct heap *h = new_heap();
	struct pages *p = calloc(1, sizeof(*p));

	(void)state;
	random_state = 521288629;
	while (p->nr_maps < NR_MAPS) {
		u32 first = random_below(NR_PAGES - 20);
		u32 nr = 1 + random_below(20);

		switch (random_below(4)) {
		case 0:
			pages_add(p, first, nr);
			do_alloc(h, fn_mmap, BASE + first * PAGE, nr * PAGE);
			break;
		case 1:
		case 2:
			pages_drop(p, first, nr);
			do_unmap(h, BASE + first * PAGE, nr * PAGE);
			break;
		default:
			random_mremap(h, p, first, random_below(NR_PAGES - 20), random_below(3) ? nr : 0);
		}
		compare_pages(h, p);
	}
	heap_free(h);
	free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_random_mappings),
	};

	return cmocka_run_group_tests(tests, find_functions, NULL);
}

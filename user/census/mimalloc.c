/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The walk through mimalloc's books: all pages of all segments, then the blocks by address. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "user/census/census_runs.h"
#include "user/lib/array.h"
#include "user/lib/cleanup.h"
#include "user/scan/mimalloc_map.h"

enum {
	MAX_BLOCKS = 1 << 16, /* of a page */
	MAX_DELAYED = 1 << 24,
	MAX_HEAPS = 4096,
	MAX_DAMAGED = 16, /* damages that are noted one by one */
	CHECK_EVERY = 4096,
};

struct mimalloc {
	struct census_walk *w;
	struct mimalloc_map map;
	taddr_t arena, arena_at, arena_end; /* of the last page; what follows on the pages so far */
	struct census_runs runs;
	taddr_t *heaps; /* owned; of threads */
	size_t nr_heaps, max_heaps;
	size_t nr_damaged;
};

/* A bit for each block of a page. */
struct free_blocks {
	u64 bits[MAX_BLOCKS / 64];
};

static void mimalloc_note_damage(struct mimalloc *m, taddr_t addr, const char *what)
{
	if (m->nr_damaged++ < MAX_DAMAGED)
		census_note(m->w->out, addr, "the page of blocks that 0x%llx describes is damaged: %s",
			    (unsigned long long)addr, what);
}

static int note_heap(struct mimalloc *m, taddr_t heap)
{
	int err;

	for (size_t i = 0; i < m->nr_heaps; i++)
		if (m->heaps[i] == heap)
			return 0;
	/* No process has so many threads with heaps of their own. */
	if (m->nr_heaps >= MAX_HEAPS) {
		mimalloc_note_damage(m, heap, "its heap is one of too many");
		return 0;
	}
	err = heap ? array_reserve(m->heaps, m->max_heaps, m->nr_heaps + 1) : 0;
	if (!err && heap)
		m->heaps[m->nr_heaps++] = heap;
	return err;
}

/* Add the page @p of @mapped. */
static int mimalloc_add_page(struct mimalloc *m, const struct mimalloc_map_page *p,
			     const struct mimalloc_map_run *mapped)
{
	struct census_arena *arena = &m->w->out->arenas[0];
	struct census_run run = { .start = mapped->start,
				  .end = p->end,
				  .first = p->capacity ? p->first : mapped->start,
				  .books = mapped->books,
				  .slot = p->slot,
				  .nr = p->capacity };
	int err = note_heap(m, p->heap);

	arena->system_bytes += run.end - run.start;
	/* Blocks that were never prepared. */
	if (run.nr * run.slot <= run.end - run.first)
		arena->page_bytes += run.end - run.first - run.nr * run.slot;
	if (!err && run.first + run.nr * run.slot <= run.end)
		return census_runs_add(&m->runs, &run);
	arena->unknown_bytes += run.end - run.start;
	if (!err)
		mimalloc_note_damage(m, run.books, "its blocks do not fit");
	return err;
}

/* Memory of the arena behind its last page and before @at has no page: it is free, or the allocator's own. */
static int add_unmapped(struct mimalloc *m, taddr_t at)
{
	const struct census_run run = { .start = m->arena_at,
					.end = at < m->arena_end ? at : m->arena_end,
					.first = m->arena_at };

	return run.start < run.end ? census_runs_add(&m->runs, &run) : 0;
}

/* A page of @arena lies at [@start, @end). Arenas and their pages come upwards. */
static int enter_arena(struct mimalloc *m, taddr_t arena, taddr_t start, taddr_t end)
{
	int err = 0;

	if (arena && arena != m->arena) {
		err = add_unmapped(m, m->arena_end);
		m->arena = m->arena_at = arena;
		m->arena_end = mimalloc_map_arena_end(&m->map, arena);
	}
	if (arena && !err)
		err = add_unmapped(m, start);
	if (arena && end > m->arena_at)
		m->arena_at = end;
	return err;
}

/* The books at the beginning of a segment have the address of the first block of each page: they hold nothing. */
static int add_books(struct mimalloc *m, const struct mimalloc_map_run *run)
{
	int err = enter_arena(m, run->start, run->start, run->start);

	m->w->out->arenas[0].system_bytes += run->end - run->start;
	return err;
}

static int walk_mapped(void *ctx, const struct mimalloc_map_run *run)
{
	struct mimalloc *m = ctx;
	struct mimalloc_map_page p;
	int err = 0;

	if (!run->books) {
		err = add_books(m, run);
	} else if (mimalloc_map_page(&m->map, run, &p)) {
		err = enter_arena(m, p.arena, run->start, p.end);
		if (!err)
			err = mimalloc_add_page(m, &p, run);
	} else {
		mimalloc_note_damage(m, run->books, "its blocks do not fit");
		m->w->out->arenas[0].unknown_bytes += run->end - run->start;
		/* Whatever lies there is not the allocator's alone. */
		if (run->start >= m->arena && run->start < m->arena_end)
			err = enter_arena(m, m->arena, run->start, run->end);
	}
	return err ? err : census_check_time(m->w);
}

/* The number of @addr among the blocks of @run; -1 if it is none. */
static s64 block_number(const struct census_run *run, taddr_t addr)
{
	u64 i = (addr - run->first) / run->slot;

	return addr >= run->first && i < run->nr && addr == run->first + i * run->slot ? (s64)i : -1;
}

/* Mark the blocks of the list that begins at @addr. Their number; -1 if the list is wrong. */
static s64 mimalloc_mark_list(struct mimalloc *m, const struct census_run *run, taddr_t addr,
			      struct free_blocks *fb)
{
	s64 nr = 0;

	for (; addr; nr++) {
		s64 i = block_number(run, addr);
		u64 next;

		if (i < 0 || fb->bits[i / 64] >> i % 64 & 1 || !census_words(m->w, addr, &next, 1))
			return -1;
		fb->bits[i / 64] |= 1ULL << i % 64;
		addr = next;
	}
	return nr;
}

static int enter_page(void *ctx, const struct census_run *run)
{
	const struct mimalloc_map_run mapped = { run->start, run->end, run->books };
	struct mimalloc *m = ctx;
	struct free_blocks fb;
	struct mimalloc_map_page p;
	s64 nr[3] = { 0 };
	u32 nr_free = 0;
	int err = 0;

	memset(fb.bits, 0, (run->nr + 63) / 64 * sizeof(fb.bits[0]));
	if (!mimalloc_map_page(&m->map, &mapped, &p)) {
		mimalloc_note_damage(m, run->books, "it cannot be read");
		return 0;
	}
	for (int i = 0; i < 3; i++)
		nr[i] = mimalloc_mark_list(m, run, p.lists[i], &fb);
	/* Which of its blocks are free is not known, and one that is must not be called lost. */
	if (nr[0] < 0 || nr[1] < 0 || nr[2] < 0 || p.used + nr[0] + nr[1] != p.capacity) {
		mimalloc_note_damage(m, run->books, "its number of used blocks differs from its lists");
		m->w->out->arenas[0].unknown_bytes += run->end - run->start;
		return 0;
	}
	for (u32 i = 0; i < run->nr && !err; i++) {
		if (fb.bits[i / 64] >> i % 64 & 1) {
			nr_free++;
			continue;
		}
		err = census_enter_block(m->w, run->first + i * run->slot, run->slot);
		if (!err)
			m->w->out->blocks[m->w->out->nr - 1].may_begin_within = p.has_aligned;
	}
	m->w->out->may_begin_within |= p.has_aligned;
	m->w->out->arenas[0].bins.blocks += nr_free;
	m->w->out->arenas[0].bins.bytes += nr_free * run->slot;
	return err;
}

/* Blocks that other threads have freed wait in a list of the heap. */
static int mark_delayed(struct mimalloc *m, taddr_t heap)
{
	u64 addr;
	int err = 0;

	if (!census_words(m->w, heap + mimalloc_map_delayed(&m->map), &addr, 1))
		addr = 0;
	for (u32 n = 1; addr && n < MAX_DELAYED && !err; n++) {
		struct census_block *block = census_find(m->w->out, addr);

		if (!block || block->state != CENSUS_LIVE || !census_words(m->w, addr, &addr, 1)) {
			census_note(m->w->out, addr,
				    "the list of freed blocks of the heap at 0x%llx has something else",
				    (unsigned long long)heap);
			break;
		}
		block->state = CENSUS_FAST;
		if (n % CHECK_EVERY == 0)
			err = census_check_time(m->w);
	}
	return err;
}

/* The walk says how many mimallocs of the process to leave out. */
static int find_pages(struct mimalloc *m, struct census_walk *w)
{
	int err = 0;

	m->w = w;
	m->map.page.may_fetch = true;
	for (u32 nth = 0; nth <= w->nth && !err; nth++)
		err = mimalloc_map_find(&m->map, w->snap, w->deadline_ns);
	return err;
}

int mimalloc_is_there(struct census_walk *w)
{
	auto_free struct mimalloc *m = calloc(1, sizeof(*m));

	return m ? find_pages(m, w) : -ENOMEM;
}

int mimalloc_walk(struct census_walk *w)
{
	const struct census_arena arena = { 0 };
	auto_free struct mimalloc *m = calloc(1, sizeof(*m));
	int err = m ? find_pages(m, w) : -ENOMEM;

	if (err)
		return err;
	err = census_add_arena(w->out, &arena);
	if (!err)
		err = mimalloc_map_each(&m->map, walk_mapped, m);
	if (!err)
		err = add_unmapped(m, m->arena_end);
	if (!err)
		err = census_runs_enter(&m->runs, w, enter_page, m);
	for (size_t i = 0; i < m->nr_heaps && !err; i++)
		err = mark_delayed(m, m->heaps[i]);
	if (!err && m->nr_damaged > MAX_DAMAGED)
		census_note(w->out, 0, "%zu pages of blocks are damaged", m->nr_damaged);
	snprintf(w->out->version, sizeof(w->out->version), "%s", mimalloc_map_version(&m->map));
	census_runs_fini(&m->runs);
	free(m->heaps);
	return err;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The walk through mimalloc's books: all pages of all segments, then the blocks by address. */
#include "user/census/mimalloc.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "user/lib/array.h"

enum {
	RESERVED_SHIFT = 32,  /* there, too */
	HAS_ALIGNED = 49,     /* bit of a word of a page */
	MAX_BLOCKS = 1 << 16, /* of a page */
	MAX_DELAYED = 1 << 24,
	MAX_HEAPS = 4096,
	MAX_DAMAGED = 16, /* damages that are noted one by one */
	CHECK_EVERY = 4096,
	MAX_WRONG = 16, /* one of so many pages */
};
#define HUGE_BLOCK (2ULL << 30)

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

/* Read the description in the map of the page of @run. */
static bool read_mapped_page(struct mimalloc *m, const struct mimalloc_map_run *run,
			     struct mimalloc_page *out)
{
	struct mimalloc_map_page p;

	if (!mimalloc_map_page(&m->map, run, &p))
		return false;
	*out = (struct mimalloc_page){ .end = p.end,
				       .capacity = p.capacity,
				       .reserved = p.reserved,
				       .has_aligned = p.has_aligned,
				       .used = p.used,
				       .block = p.slot,
				       .first = p.first,
				       .lists = { p.lists[0], p.lists[1], p.lists[2] },
				       .heap = p.heap,
				       .arena = p.arena };
	return true;
}

/* Read the entry at @entry of the slice at @start. */
static bool mimalloc_read_page(struct mimalloc *m, taddr_t entry, taddr_t start, struct mimalloc_page *out)
{
	const struct mimalloc_layout *l = m->layout;
	const u8 *p = census_window(m->w, entry, l->entry * 8);
	u64 words[MIMALLOC_MAX_ENTRY];

	if (!p)
		return false;
	for (size_t i = 0; i < l->entry; i++)
		words[i] = census_word_of(m->w, p + i * 8);
	*out = (struct mimalloc_page){ .nr_slices = (u32)words[0],
				       .end = start + (u64)(u32)words[0] * MIMALLOC_SLICE,
				       .capacity = words[1] >> MIMALLOC_CAPACITY_SHIFT & 0xffff,
				       .reserved = words[1] >> RESERVED_SHIFT & 0xffff,
				       .has_aligned = words[1] >> HAS_ALIGNED & 1,
				       .used = l->has_start ? (u16)words[l->nr_used] : (u32)words[l->nr_used],
				       .block = mimalloc_slot(l, words),
				       .first = mimalloc_first(l, words, start),
				       .lists = { words[l->lists[0]], words[l->lists[1]],
						  words[l->lists[2]] & ~3ULL },
				       .heap = words[l->heap] };
	/* A second half of other slices: not the first entry of a page. */
	return out->nr_slices && !(words[0] >> 32);
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

/* Add the page that the entry at @entry describes, whose slices begin at @start. */
static int mimalloc_add_page(struct mimalloc *m, const struct mimalloc_page *p, taddr_t entry, taddr_t start)
{
	struct census_arena *arena = &m->w->out->arenas[0];
	struct census_run run = { .start = start, .end = p->end, .first = start, .books = entry };
	int err = 0;

	if (!p->block || !p->capacity) {
		arena->page_bytes += p->block ? run.end - start : 0;
		arena->system_bytes += p->block ? run.end - start : 0;
		return census_runs_add(&m->runs, &run);
	}
	run.slot = m->layout && p->block >= HUGE_BLOCK ? run.end - start : p->block;
	run.first = p->first;
	run.nr = p->capacity;
	arena->system_bytes += run.end - start;
	/* Blocks that were never prepared. */
	if (run.nr * run.slot <= run.end - run.first)
		arena->page_bytes += run.end - run.first - run.nr * run.slot;
	err = note_heap(m, p->heap);
	if (!err && run.slot % 8 == 0 && run.first >= start && run.first + run.nr * run.slot <= run.end)
		return census_runs_add(&m->runs, &run);
	arena->unknown_bytes += run.end - start;
	if (!err)
		mimalloc_note_damage(m, entry, "its blocks do not fit");
	return err;
}

static int walk_segment(struct mimalloc *m, const struct mimalloc_segment *s)
{
	/* The books have the address of the first block of each page: they hold nothing. */
	const struct census_run books = { .start = s->addr,
					  .end = s->addr + (u64)s->nr_info * MIMALLOC_SLICE,
					  .first = s->addr };
	struct census_arena *arena = &m->w->out->arenas[0];
	int err = census_runs_add(&m->runs, &books);

	arena->system_bytes += (u64)s->nr_info * MIMALLOC_SLICE;
	for (u64 i = s->nr_info; i < s->nr_entries && !err;) {
		taddr_t entry = s->addr + (m->layout->table + i * m->layout->entry) * 8;
		struct mimalloc_page p;

		if (!mimalloc_read_page(m, entry, s->addr + i * MIMALLOC_SLICE, &p) ||
		    p.nr_slices > s->nr_slices - i) {
			mimalloc_note_damage(m, entry, "its number of slices is wrong");
			arena->unknown_bytes += (s->nr_entries - i) * MIMALLOC_SLICE;
			break;
		}
		err = mimalloc_add_page(m, &p, entry, s->addr + i * MIMALLOC_SLICE);
		i += p.nr_slices;
	}
	return err ? err : census_check_time(m->w);
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

static int walk_mapped(void *ctx, const struct mimalloc_map_run *run)
{
	struct mimalloc *m = ctx;
	struct mimalloc_page p;
	int err = 0;

	if (read_mapped_page(m, run, &p)) {
		err = enter_arena(m, p.arena, run->start, p.end);
		if (!err)
			err = mimalloc_add_page(m, &p, run->books, run->start);
	} else {
		mimalloc_note_damage(m, run->books, "its blocks do not fit");
		m->w->out->arenas[0].unknown_bytes += run->end - run->start;
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
	struct mimalloc_page p;
	s64 nr[3] = { 0 };
	u32 nr_free = 0;
	int err = 0;

	memset(fb.bits, 0, (run->nr + 63) / 64 * sizeof(fb.bits[0]));
	if (!(m->layout ? mimalloc_read_page(m, run->books, run->start, &p)
			: read_mapped_page(m, &mapped, &p))) {
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

	if (!census_words(m->w, heap + (m->layout ? m->layout->delayed : mimalloc_map_delayed(&m->map)),
			  &addr, 1))
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

static int census_mimalloc_walk(struct mimalloc *m)
{
	const struct census_arena arena = { 0 };
	int err = census_add_arena(m->w->out, &arena);

	for (size_t i = 0; m->layout && i < m->nr_segments && !err; i++)
		err = walk_segment(m, &m->segments[i]);
	if (!err && !m->layout)
		err = mimalloc_map_each(&m->map, walk_mapped, m);
	if (!err && !m->layout)
		err = add_unmapped(m, m->arena_end);
	if (!err)
		err = census_runs_enter(&m->runs, m->w, enter_page, m);
	for (size_t i = 0; i < m->nr_heaps && !err; i++)
		err = mark_delayed(m, m->heaps[i]);
	if (!err && m->nr_damaged > MAX_DAMAGED)
		census_note(m->w->out, 0, "%zu pages of blocks are damaged", m->nr_damaged);
	snprintf(m->w->out->version, sizeof(m->w->out->version), "%s",
		 m->layout ? m->layout->version : mimalloc_map_version(&m->map));
	return err;
}

static void free_all(struct mimalloc *m)
{
	census_runs_fini(&m->runs);
	free(m->segments);
	free(m->heaps);
}

/* Do the pages of @s have the room that they say, and lists that begin with blocks? Adds to *@nr_right, *@nr_wrong. */
static void count_right(struct mimalloc *m, const struct mimalloc_segment *s, size_t *nr_right,
			size_t *nr_wrong)
{
	struct mimalloc_page p;

	for (u64 i = s->nr_info; i < s->nr_entries; i += p.nr_slices) {
		taddr_t start = s->addr + i * MIMALLOC_SLICE;
		struct census_run run;

		if (!mimalloc_read_page(m, s->addr + (m->layout->table + i * m->layout->entry) * 8, start,
					&p) ||
		    p.nr_slices > s->nr_slices - i) {
			++*nr_wrong;
			return;
		}
		run = (struct census_run){ .first = p.first, .slot = p.block, .nr = p.capacity };
		if (p.block && p.capacity && p.block < HUGE_BLOCK && p.first >= start)
			++*((p.nr_slices * MIMALLOC_SLICE - (p.first - start)) / p.block == p.reserved
				    ? nr_right
				    : nr_wrong);
		for (int k = 0; k < 3 && p.block; k++)
			if (p.lists[k])
				++*(block_number(&run, p.lists[k]) < 0 ? nr_wrong : nr_right);
	}
}

/* How many lists are right by layout @k? 0 if it is none: nearly all must be, as a call may be under way. */
static int try_layout(struct mimalloc *m, u32 k, size_t *nr_right)
{
	size_t nr_wrong = 0;
	int err;

	*nr_right = 0;
	m->layout = &mimalloc_layouts[k];
	m->nr_segments = 0;
	err = mimalloc_find(m);
	for (size_t i = 0; i < m->nr_segments && !err; i++)
		count_right(m, &m->segments[i], nr_right, &nr_wrong);
	if (err || nr_wrong > *nr_right / MAX_WRONG)
		*nr_right = 0;
	return err == -ENOENT ? 0 : err;
}

/*
 * Find the layout and all segments. Of several mimallocs in a process the one with most right lists comes first; the
 * walk says how many to leave out. Several layouts may fit one of them in part.
 */
static int find_layout(struct mimalloc *m)
{
	struct {
		size_t nr_right;
		u64 disguise;
	} of[NR_MIMALLOC_LAYOUTS + 1] = { { 0 } }; /* the last one is the map */
	u32 best = 0;
	int err = 0;

	for (u32 k = 0; k < NR_MIMALLOC_LAYOUTS && !err; k++) {
		err = try_layout(m, k, &of[k].nr_right);
		of[k].disguise = m->disguise;
	}
	if (err)
		return err;
	if (!mimalloc_map_find(&m->map, m->w->snap))
		of[NR_MIMALLOC_LAYOUTS].nr_right = m->map.nr_right;
	for (u32 nth = 0; nth <= m->w->nth; nth++) {
		for (u32 k = 0; nth && k <= NR_MIMALLOC_LAYOUTS; k++)
			of[k].nr_right = of[k].disguise == of[best].disguise ? 0 : of[k].nr_right;
		best = 0;
		for (u32 k = 1; k <= NR_MIMALLOC_LAYOUTS; k++)
			best = of[k].nr_right > of[best].nr_right ? k : best;
		if (!of[best].nr_right)
			return -ENOENT;
	}
	m->layout = NULL;
	return best == NR_MIMALLOC_LAYOUTS ? 0 : try_layout(m, best, &of[best].nr_right);
}

int mimalloc_is_there(struct census_walk *w)
{
	struct mimalloc m = { .w = w };
	int err = find_layout(&m);

	free_all(&m);
	return err;
}

int mimalloc_walk(struct census_walk *w)
{
	struct mimalloc m = { .w = w };
	int err = find_layout(&m);

	if (!err)
		err = census_mimalloc_walk(&m);
	free_all(&m);
	return err;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The walk through jemalloc's books: all extents of its tree, then the blocks by address. */
#include "user/census/jemalloc.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "user/lib/cleanup.h"

enum {
	MAX_LOOKS = 1 << 16, /* pages of possible leaves */
	MAX_SLOTS = 512,
	MAP_WORDS = MAX_SLOTS / 64,
	MAX_ARENAS = 1 << 12,
	MAP_AT = 64,	    /* of the map of free slots, in a description */
	MAX_SIZE_BITS = 44, /* of census_block */
	MAX_DAMAGED = 16,   /* damaged descriptions that are noted one by one */
};

/* The index of the arena that jemalloc calls @number. */
static int arena_of(struct jemalloc_books *j, u32 number, u32 *index)
{
	const struct census_arena arena = { 0 };
	int err = 0;

	if (!j->arenas[number]) {
		err = census_add_arena(j->w->out, &arena);
		if (!err)
			j->arenas[number] = (u32)j->w->out->nr_arenas;
	}
	*index = j->arenas[number] - 1;
	return err;
}

static void jemalloc_note_damage(struct jemalloc_books *j, taddr_t addr, const char *what)
{
	if (j->runs.nr_damaged++ < MAX_DAMAGED)
		census_note(j->w->out, addr, "the description of the extent at 0x%llx is damaged: %s",
			    (unsigned long long)addr, what);
}

/* Memory that is kept for later: its pages may be resident. */
static int add_free(struct jemalloc_books *j, struct census_arena *arena, const struct census_run *run,
		    const struct jemalloc_extent *e)
{
	if (e->state == JEMALLOC_RETAINED)
		return 0;
	if (e->state > JEMALLOC_RETAINED)
		jemalloc_note_damage(j, e->addr, "a thread is changing it");
	arena->system_bytes += e->size;
	arena->page_bytes += e->size;
	return census_runs_add(&j->runs, run);
}

static int add_extent(struct jemalloc_books *j, const struct jemalloc_extent *e)
{
	struct census_run run = { .start = e->addr & ~(taddr_t)(JEMALLOC_PAGE - 1),
				  .first = e->addr,
				  .books = e->books };
	struct census_arena *arena;
	int err = arena_of(j, e->arena, &run.arena);

	if (err)
		return err;
	arena = &j->w->out->arenas[run.arena];
	run.end = run.start + e->size;
	if (e->state != JEMALLOC_ACTIVE)
		return add_free(j, arena, &run, e);
	arena->system_bytes += e->size;
	run.slot = jemalloc_block_bytes(e);
	run.is_cut = e->is_slab;
	run.nr = e->is_slab ? (u32)(e->size / run.slot) : 1;
	if (run.nr <= MAX_SLOTS && run.slot >> MAX_SIZE_BITS == 0 && run.first + run.nr * run.slot <= run.end)
		return census_runs_add(&j->runs, &run);
	jemalloc_note_damage(j, e->addr, "its blocks do not fit");
	arena->unknown_bytes += e->size;
	return 0;
}

static int jemalloc_enter_word(void *ctx, taddr_t page, u64 word)
{
	struct jemalloc_books *j = ctx;
	struct jemalloc_extent e;
	int err = census_check_time(j->w);

	if (!word)
		jemalloc_note_damage(j, page, "its part of the tree is nowhere");
	if (err || !word || (word & JEMALLOC_EXTENT_MASK) == j->last)
		return err;
	j->last = word & JEMALLOC_EXTENT_MASK;
	if (!jemalloc_tree_extent(&j->tree, word, page, &e))
		jemalloc_note_damage(j, page, "its size or its address is wrong");
	else if (e.addr - page >= JEMALLOC_PAGE)
		jemalloc_note_damage(j, page, "the tree has only its end");
	else
		err = add_extent(j, &e);
	return err;
}

/* The blocks of a slab: a bit is set for each free slot. */
static int jemalloc_enter_slots(struct jemalloc_books *j, const struct census_run *run)
{
	struct census_arena *arena = &j->w->out->arenas[run->arena];
	u64 map[MAP_WORDS], fields;
	u32 nr_free = 0;
	int err = 0;

	if (!census_words(j->w, run->books + MAP_AT, map, MAP_WORDS) ||
	    !census_words(j->w, run->books, &fields, 1)) {
		jemalloc_note_damage(j, run->start, "it cannot be read");
		return 0;
	}
	for (u32 i = 0; i < run->nr && !err; i++) {
		if (map[i / 64] >> i % 64 & 1)
			nr_free++;
		else
			err = census_enter_block(j->w, run->first + i * run->slot, run->slot);
	}
	arena->bins.blocks += nr_free;
	arena->bins.bytes += nr_free * run->slot;
	if (nr_free != (fields >> j->tree.layout->free & 1023))
		jemalloc_note_damage(j, run->start, "its number of free blocks differs from its map");
	return err;
}

static int jemalloc_enter_run(void *ctx, const struct census_run *run)
{
	struct jemalloc_books *j = ctx;

	return run->is_cut ? jemalloc_enter_slots(j, run) : census_enter_block(j->w, run->first, run->slot);
}

static int find_tree(struct jemalloc_books *j, struct census_walk *w)
{
	j->w = w;
	j->tree.max_looks = MAX_LOOKS;
	j->tree.books.may_fetch = true;
	return w->page == JEMALLOC_PAGE ? jemalloc_tree_find(&j->tree, w->snap, w->deadline_ns, w->nth)
					: -ENOENT;
}

int jemalloc_is_there(struct census_walk *w)
{
	auto_free struct jemalloc_books *j = calloc(1, sizeof(*j));

	return j ? find_tree(j, w) : -ENOMEM;
}

int jemalloc_walk(struct census_walk *w)
{
	auto_free struct jemalloc_books *j = calloc(1, sizeof(*j));
	auto_free u32 *arenas = calloc(MAX_ARENAS, sizeof(*arenas));
	int err = j && arenas ? find_tree(j, w) : -ENOMEM;

	if (err)
		return err;
	j->arenas = arenas;
	err = jemalloc_tree_each(&j->tree, jemalloc_enter_word, j);
	if (!err)
		err = census_runs_enter(&j->runs, w, jemalloc_enter_run, j);
	if (!err && j->runs.nr_damaged > MAX_DAMAGED)
		census_note(w->out, 0, "%zu descriptions of extents are damaged", j->runs.nr_damaged);
	if (!err)
		err = jemalloc_mark_cached(j);
	if (!err)
		snprintf(w->out->version, sizeof(w->out->version), "%s", j->tree.layout->version);
	census_runs_fini(&j->runs);
	return err;
}

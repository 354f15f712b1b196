/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The walk through jemalloc's books: all extents of its tree, then the blocks by address. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "user/census/census_runs.h"
#include "user/lib/array.h"
#include "user/lib/cleanup.h"
#include "user/scan/jemalloc_tree.h"

/* A walk through the books of jemalloc (user/scan/jemalloc_tree.h). */
struct jemalloc_books {
	struct census_walk *w;
	struct jemalloc_tree tree;
	taddr_t last; /* description of the extent that was added last */
	struct census_runs runs;
	u32 *arenas; /* owned; by jemalloc's number: index in out->arenas, plus 1 */
};

/* Free blocks of jemalloc that its extents call used: those in the caches of threads. */

/*
 * A table is believed if the arrays of all small sizes follow on each other, and every block in them is a live block of
 * the size.
 */

enum {
	MAX_ENTRIES = 100, /* small and some large sizes */
	MAX_BETWEEN = 32,  /* words between the entries of small and of large sizes, before 5.3 */
};

/* Are the blocks of @c live blocks of the class @class? With @is_marking, they are marked. */
static bool take_blocks(struct jemalloc_books *j, const struct jemalloc_bin *c, u32 class, bool is_marking)
{
	for (taddr_t at = c->start; at < c->end; at += 8) {
		struct census_block *block;
		u64 addr;

		if (!census_words(j->w, at, &addr, 1))
			return false;
		block = census_find(j->w->out, addr);
		if (!block || block->state != CENSUS_LIVE || block->size > jemalloc_class_bytes(class) ||
		    block->size <= (class ? jemalloc_class_bytes(class - 1) : 0))
			return false;
		if (is_marking)
			block->state = CENSUS_CACHED;
	}
	return true;
}

/* The number of entries at @words, of at most @nr words, from the class @class on. Their arrays follow on *@last. */
static u32 nr_entries(struct jemalloc_books *j, const u64 *words, size_t nr, u32 class, taddr_t *last)
{
	u32 n = 0, most = j->tree.layout->has_table || class ? MAX_ENTRIES : JEMALLOC_NR_SMALL;

	for (; n < most && (n + 1) * JEMALLOC_BIN_WORDS <= nr; n++) {
		struct jemalloc_bin c;

		if (!jemalloc_bin_read(&j->tree, words + n * JEMALLOC_BIN_WORDS, *last, &c) ||
		    !take_blocks(j, &c, class + n, false))
			break;
		*last = c.end > *last ? c.end : *last;
	}
	return n;
}

/* The array lies in a block that no program has asked for. */
static void mark_own(struct jemalloc_books *j, taddr_t addr)
{
	const struct census_blocks *out = j->w->out;
	size_t at = array_search(i, 0, out->nr, out->blocks[i].addr <= addr);
	struct census_block *block = at ? &out->blocks[at - 1] : NULL;

	if (block && addr - block->addr <= block->size && block->state == CENSUS_LIVE)
		block->state = CENSUS_OWN;
}

static void mark_entries(struct jemalloc_books *j, const u64 *words, u32 nr, u32 class)
{
	for (u32 i = 0; i < nr; i++) {
		struct jemalloc_bin c;

		if (!jemalloc_bin_read(&j->tree, words + i * JEMALLOC_BIN_WORDS, 0, &c) ||
		    !take_blocks(j, &c, class + i, true))
			census_note(j->w->out, c.start, "the cache of a thread at 0x%llx lists a block twice",
				    (unsigned long long)c.start);
		if (class + i == 0)
			mark_own(j, c.end - 8);
	}
}

/* Mark the blocks of large sizes, whose entries lie somewhere behind those of the small ones, at @words. */
static void mark_large(struct jemalloc_books *j, const u64 *words, size_t nr, taddr_t small_end)
{
	size_t best = 0;
	u32 most = 0;

	for (size_t at = 0; at < MAX_BETWEEN && at < nr; at++) {
		taddr_t last = small_end;
		u32 n = nr_entries(j, words + at, nr - at, JEMALLOC_NR_SMALL, &last);

		if (n > most) {
			most = n;
			best = at;
		}
	}
	mark_entries(j, words + best, most, JEMALLOC_NR_SMALL);
}

/* Mark the table at @words, of at most @nr words. Returns its words; 0 = none is there. */
static size_t jemalloc_cached_mark_table(struct jemalloc_books *j, const u64 *words, size_t nr)
{
	taddr_t last = 0;
	u32 n = nr_entries(j, words, nr, 0, &last);
	size_t size = (size_t)n * JEMALLOC_BIN_WORDS;

	if (n < JEMALLOC_NR_SMALL)
		return 0;
	mark_entries(j, words, n, 0);
	if (!j->tree.layout->has_table)
		mark_large(j, words + size, nr - size, last);
	return size;
}

static u32 jemalloc_cached_search_thread(struct jemalloc_books *j, taddr_t tp, u64 *words)
{
	taddr_t start;
	size_t nr = jemalloc_thread_words(&j->tree, tp, words, &start);
	u32 nr_tables = 0;

	for (size_t i = 0; i + (size_t)JEMALLOC_NR_SMALL * JEMALLOC_BIN_WORDS <= nr; i++) {
		size_t n = words[i] || words[i + 2] ? jemalloc_cached_mark_table(j, words + i, nr - i) : 0;

		nr_tables += n != 0;
		i += n ? n - 1 : 0;
	}
	return nr_tables;
}

/* Mark the blocks in the caches of threads as free, and these caches as the allocator's own. 0, -ENOMEM, -ETIME. */
static int jemalloc_mark_cached(struct jemalloc_books *j)
{
	auto_free u64 *words = calloc(JEMALLOC_MAX_TLS, sizeof(*words));
	u32 nr_tables = 0;
	int err = words ? 0 : -ENOMEM;

	for (size_t i = 0; i < j->w->snap->nr_threads && !err; i++) {
		nr_tables += jemalloc_cached_search_thread(j, j->w->snap->threads[i].tp, words);
		err = census_check_time(j->w);
	}
	if (!err && !nr_tables && j->w->out->nr)
		census_note(j->w->out, 0, "no cache of a thread was found: blocks in it would count as live");
	return err;
}

enum {
	MAX_LOOKS = 1 << 16, /* pages of possible leaves */
	MAX_SLOTS = 512,
	MAP_WORDS = MAX_SLOTS / 64,
	MAX_ARENAS = 1 << 12,
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

	if (!census_words(j->w, run->books + JEMALLOC_MAP_AT, map, MAP_WORDS) ||
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

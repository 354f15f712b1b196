/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The walk through tcmalloc's books: all spans of its map of pages, then the blocks by address. */
#include "user/census/tcmalloc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	PAGE_WORDS = TCMALLOC_PAGE / 8,
	MAX_BLOCKS = 1 << 16, /* of a span */
	MAX_SIZE_BITS = 44,   /* of census_block */
	MAX_DAMAGED = 16,     /* damages that are noted one by one */
};

static void tcmalloc_note_damage(struct tcmalloc *t, taddr_t addr, const char *what)
{
	if (t->runs.nr_damaged++ < MAX_DAMAGED)
		census_note(t->w->out, addr, "the span at 0x%llx is damaged: %s", (unsigned long long)addr,
			    what);
}

static int add_span(struct tcmalloc *t, const struct tcmalloc_span *s, taddr_t books)
{
	struct census_arena *arena = &t->w->out->arenas[0];
	struct census_run run = { .start = s->start << t->shift, .books = books };
	u64 bytes = s->nr << t->shift;

	run.end = run.start + bytes;
	run.first = run.start;
	if (s->location == TCMALLOC_RETURNED)
		return census_runs_add(&t->runs, &run);
	arena->system_bytes += bytes;
	if (s->location == TCMALLOC_FREE) {
		arena->page_bytes += bytes;
		return census_runs_add(&t->runs, &run);
	}
	run.is_cut = s->class != 0;
	run.slot = s->class && s->class < t->nr_classes ? t->sizes[s->class] : bytes;
	if (s->class < t->nr_classes && bytes / run.slot <= MAX_BLOCKS && run.slot >> MAX_SIZE_BITS == 0) {
		run.nr = (u32)(bytes / run.slot);
		return census_runs_add(&t->runs, &run);
	}
	tcmalloc_note_damage(t, run.start, "its blocks do not fit");
	arena->unknown_bytes += bytes;
	return 0;
}

/* All words of the leaf @leaf, whose first one is for the page @page. Pages below *@next belong to a span already. */
static int tcmalloc_walk_leaf(struct tcmalloc *t, taddr_t leaf, u64 page, u64 *next)
{
	taddr_t end = leaf + (8ULL << t->leaf_bits);
	int err = 0;

	for (taddr_t at = leaf; at < end && !err;) {
		u64 words[PAGE_WORDS];
		size_t nr = tcmalloc_read_words(t, at, words);

		for (size_t i = 0; i < nr && at + i * 8 < end && !err; i++) {
			u64 here = page + (at - leaf) / 8 + i;
			struct tcmalloc_span s;

			/* Words in the middle of a span may be those of earlier ones. */
			if (!words[i] || here < *next || !tcmalloc_read_span(t, words[i], &s) ||
			    s.start != here)
				continue;
			*next = s.start + s.nr;
			err = add_span(t, &s, words[i]);
		}
		at += nr * 8;
		if (!err)
			err = census_check_time(t->w);
	}
	return err;
}

static int walk_map(struct tcmalloc *t)
{
	size_t nr_leaves = (size_t)1 << (TCMALLOC_ADDRESS_BITS - t->shift - t->leaf_bits);
	u64 next = 0;
	int err = 0;

	for (size_t at = 0; at < nr_leaves && !err;) {
		u64 words[PAGE_WORDS];
		size_t nr = tcmalloc_read_words(t, t->root + at * 8, words);

		for (size_t i = 0; i < nr && at + i < nr_leaves && !err; i++)
			if (words[i] && words[i] % 8 == 0)
				err = tcmalloc_walk_leaf(t, words[i], (u64)(at + i) << t->leaf_bits, &next);
		at += nr;
	}
	return err;
}

/* Has tcmalloc forgotten the block at @addr itself? It registers an object of its library, which has only a class. */
static bool is_forgotten(struct tcmalloc *t, taddr_t addr, u64 size)
{
	const struct snapshot_map *map;
	u64 word;

	if (size != t->sizes[1] || !census_words(t->w, addr, &word, 1))
		return false;
	map = word ? snapshot_map_find(t->w->snap, word) : NULL;
	return map && map->ino && strstr(map->path, "/libtcmalloc");
}

static int tcmalloc_enter_slot(struct tcmalloc *t, taddr_t addr, u64 size)
{
	struct census_blocks *out = t->w->out;
	int err = census_enter_block(t->w, addr, size);

	if (!err && is_forgotten(t, addr, size))
		out->blocks[out->nr - 1].state = CENSUS_OWN;
	return err;
}

/* The blocks of a span of small ones: those that are not in its list. */
static int tcmalloc_enter_slots(struct tcmalloc *t, const struct census_run *run)
{
	struct census_arena *arena = &t->w->out->arenas[run->arena];
	u64 free_bits[MAX_BLOCKS / 64];
	struct tcmalloc_span s;
	u32 nr_free = 0;
	int err = 0;

	memset(free_bits, 0, (run->nr + 63) / 64 * sizeof(free_bits[0]));
	if (!tcmalloc_read_span(t, run->books, &s)) {
		tcmalloc_note_damage(t, run->start, "it cannot be read");
		return 0;
	}
	for (taddr_t at = s.free; at; nr_free++) {
		u64 i = (at - run->first) / run->slot;

		if (at < run->first || i >= run->nr || at != run->first + i * run->slot ||
		    free_bits[i / 64] >> i % 64 & 1 || !census_words(t->w, at, &at, 1)) {
			tcmalloc_note_damage(t, run->start, "its list of free blocks has something else");
			break;
		}
		free_bits[i / 64] |= 1ULL << i % 64;
	}
	if (s.nr_used + nr_free != run->nr)
		tcmalloc_note_damage(t, run->start, "its number of used blocks differs from its list");
	for (u32 i = 0; i < run->nr && !err; i++)
		if (!(free_bits[i / 64] >> i % 64 & 1))
			err = tcmalloc_enter_slot(t, run->first + i * run->slot, run->slot);
	arena->bins.blocks += nr_free;
	arena->bins.bytes += nr_free * run->slot;
	return err;
}

static int tcmalloc_enter_run(void *ctx, const struct census_run *run)
{
	struct tcmalloc *t = ctx;

	return run->is_cut ? tcmalloc_enter_slots(t, run) : census_enter_block(t->w, run->first, run->slot);
}

static int tcmalloc_walk_all(struct tcmalloc *t)
{
	const struct census_arena arena = { 0 };
	int err = census_add_arena(t->w->out, &arena);

	if (!err)
		err = walk_map(t);
	if (!err)
		err = census_runs_enter(&t->runs, t->w, tcmalloc_enter_run, t);
	if (!err && t->runs.nr_damaged > MAX_DAMAGED)
		census_note(t->w->out, 0, "%zu spans are damaged", t->runs.nr_damaged);
	if (!err)
		err = tcmalloc_mark_cached(t);
	snprintf(t->w->out->version, sizeof(t->w->out->version), "of gperftools");
	return err;
}

int tcmalloc_is_there(struct census_walk *w)
{
	struct tcmalloc t = { .w = w };
	int err = tcmalloc_find(&t);

	free(t.caches);
	return err;
}

int tcmalloc_walk(struct census_walk *w)
{
	struct tcmalloc t = { .w = w };
	int err = tcmalloc_find(&t);

	if (!err)
		err = tcmalloc_walk_all(&t);
	census_runs_fini(&t.runs);
	free(t.caches);
	return err;
}

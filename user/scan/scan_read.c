/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One pass over the memory of the moment. Threads look at pieces of it. The results are collected piece by piece. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "user/lib/cleanup.h"
#include "user/lib/progress.h"
#include "user/scan/scan_look.h"
#include "user/scan/scan_shapes.h"

enum {
	MIN_ROOT_REFS = 65536,
	AHEAD = 16,	     /* roots */
	FILE_HOLE = 1 << 20, /* bytes between two files that begin a new range */
};

struct scan_reading {
	struct scan *s;
	struct region_list regions;
	struct looker_facts facts;
	struct looker parts[SNAPSHOT_PARTS];
};

/* Enter a root. Only the first root of a block is kept. */
static int enter_root(struct scan *s, const struct root_ref *hit)
{
	struct scan_block *b = &s->blocks[hit->block];
	bool is_noted;

	if (b->flags & BLOCK_ROOT)
		return 0;
	/* A root beyond the limit counts, but no chain can name it, and no heuristic can take it for a start. */
	is_noted = s->roots.nr < s->nr + MIN_ROOT_REFS;
	if (!IS_AGENT && hit->offset == ROOT_TAIL)
		return is_noted ? roots_add(&s->roots, hit) : 0;
	b->flags |= hit->offset && (is_noted || hit->offset != ROOT_END) ? BLOCK_SEED : BLOCK_ROOT;
	return is_noted ? roots_add(&s->roots, hit) : 0;
}

/* Collect the results of a piece. Lookers read blocks meanwhile, but not the flags that change here. */
static int enter_part(struct scan_reading *rd, struct looker *r)
{
	struct scan *s = rd->s;
	int err = edges_append(&s->edges, &r->edges);

	for (size_t i = 0; i < r->nr_heads; i++)
		s->blocks[r->heads[i].block].flags |= r->heads[i].flags;
	for (size_t i = 0; i < r->nr_hits && !err; i++) {
		if (i + AHEAD < r->nr_hits)
			__builtin_prefetch(&s->blocks[r->hits[i + AHEAD].block]);
		err = enter_root(s, &r->hits[i]);
	}
	if (!err && !IS_AGENT)
		err = looker_list_enter(&r->tagged, s, &s->tagged);
	if (!err && !IS_AGENT)
		err = looker_list_enter(&r->aware, s, &s->aware);
	if (!err && !IS_AGENT)
		err = scan_enter_begins(s, r);
	if (!IS_AGENT)
		s->has_ends |= r->has_ends, s->has_links |= r->has_links,
			s->has_low_marks |= r->has_low_marks;
	s->result.scanned_bytes += r->scanned_bytes;
	r->nr_heads = r->nr_hits = 0;
	r->scanned_bytes = 0;
	r->is_begun = false;
	return err;
}

static int scan_read_look(void *ctx, u32 part, const struct snapshot_chunk *chunk)
{
	struct scan_reading *rd = ctx;

	return scan_is_unwanted(rd->s) ? -ECANCELED : looker_look(&rd->parts[part], chunk);
}

static int scan_read_done(void *ctx, u32 part)
{
	struct scan_reading *rd = ctx;

	return enter_part(rd, &rd->parts[part]);
}

static int scan_read_all(struct scan_reading *rd)
{
	const struct snapshot_visitor visitor = { rd, scan_read_look, scan_read_done };
	int err;

	if (!rd->s->nr)
		return 0;
	err = snapshot_read(rd->s->snap, &visitor);
	/* Last, because a block keeps its first root, and the name of a variable says more than that of a register. */
	if (!err)
		err = looker_words(&rd->parts[0]);
	if (!err)
		err = scan_read_done(rd, 0);
	if (!err)
		err = edges_finish(&rd->s->edges, rd->s->nr);
	return err;
}

/* The heap lies between program and libraries, so most pointers to blocks are outside of all ranges of files. */
static void scan_read_add_file(struct looker_facts *facts, const struct snapshot_map *map)
{
	u32 nr = facts->nr_files;

	if (nr && (nr == NR_FILES || map->start - facts->files[nr - 1].end < FILE_HOLE)) {
		facts->files[nr - 1].end = map->end;
		return;
	}
	facts->files[facts->nr_files].start = map->start;
	facts->files[facts->nr_files++].end = map->end;
}

static void find_facts(struct looker_facts *facts, const struct scan *s)
{
	const u16 probe = 1;
	bool is_little = *(const u8 *)&probe == 1;

	facts->snap = s->snap;
	facts->page = (u64)sysconf(_SC_PAGESIZE);
	facts->mask = s->options.pointer_mask ? s->options.pointer_mask : UINT64_MAX;
	facts->slack = s->options.slack;
	facts->heuristics = SCAN_HEURISTICS & ~s->options.no_heuristics;
	facts->is_native =
		s->word_size == 8 && s->snap->is_big_endian != is_little && !s->options.want_unaligned;
	for (size_t i = 0; i < s->snap->nr_maps; i++)
		if (s->snap->maps[i].ino && s->snap->maps[i].is_readable)
			scan_read_add_file(facts, &s->snap->maps[i]);
}

/* The limit of bytes for pointers: more than the words in all blocks can need. */
static u64 edge_limit(const struct scan *s)
{
	u64 bytes = s->bytes + (u64)s->nr * 32;

	if (s->options.max_memory)
		return s->options.max_memory;
	return bytes * (s->word_size == 8 && !s->options.want_unaligned ? 1 : 8) + (1 << 20);
}

/* Enter the table of TLS blocks of the thread of glibc whose thread pointer is @tp. */
static int enter_thread_table(struct scan *s, taddr_t tp)
{
	u32 w = s->word_size;
	u8 bytes[2 * 8];
	int err = 0;

	if (!tp || tp % w || snapshot_peek(s->snap, tp, bytes, 2U * w) != 0)
		return 0;
	for (u32 at = 0; at < 2 * w && !err; at += w) {
		u64 table = region_word(s->snap, bytes + at);
		u32 block = scan_lookup(s, table);

		if (block != BLOCK_NONE && table - s->blocks[block].addr == 2U * w)
			err = enter_root(s, &(struct root_ref){ WHERE(WHERE_MEMORY, tp + at), block, 0 });
	}
	return err;
}

/*
 * glibc points to the table of a thread behind its first entry of two words: by the word at the thread pointer
 * (aarch64), or by the next one (x86). No program writes there, so that this holds the table for sure, as long as the
 * thread lives, or glibc keeps its stack and table for a later one.
 */
static int enter_thread_tables(struct scan *s, const struct region_list *regions)
{
	int err = 0;

	for (size_t i = 0; s->nr && i < s->snap->nr_threads && !err; i++)
		err = enter_thread_table(s, s->snap->threads[i].tp);
	for (size_t i = 0; s->nr && i < regions->nr_cached && !err; i++)
		err = enter_thread_table(s, regions->cached[i]);
	return err;
}

/* Are there blocks in the memory of brk? Then glibc, which gives memory of freed blocks back, is in use too. */
static bool has_brk_blocks(const struct scan *s)
{
	for (size_t i = 0; i < s->snap->nr_maps; i++) {
		const struct snapshot_map *map = &s->snap->maps[i];
		u32 first = strcmp(map->path, "[heap]") ? s->nr : scan_lower_bound(s, map->start);

		if (first < s->nr && s->blocks[first].addr < map->end)
			return true;
	}
	return false;
}

int scan_read(struct scan *s, struct snapshot *snap)
{
	auto_free struct scan_reading *rd = calloc(1, sizeof(*rd));
	int err;

	if (!rd)
		return -ENOMEM;
	progress_phase("searching its memory for pointers");
	s->snap = snap;
	s->word_size = snap->word_size;
	rd->s = s;
	rd->facts.regions = &rd->regions;
	find_facts(&rd->facts, s);
	s->freed = s->books.cover ? s->books.cover(s->books.ctx) : NULL;
	s->cover = s->options.is_partial ? s->freed : NULL;
	if (!s->options.keeps_freed || has_brk_blocks(s))
		s->freed = NULL;
	err = scan_apply_drained(s);
	if (!err)
		err = edges_init(&s->edges, s->nr, edge_limit(s));
	if (!err)
		err = region_list_init(&rd->regions, s);
	if (!err && (rd->facts.heuristics & SCAN_GLIB))
		err = glib_find(&rd->facts.glib, s);
	for (u32 i = 0; i < SNAPSHOT_PARTS; i++)
		looker_init(&rd->parts[i], s, &rd->facts);
	if (!err)
		err = scan_read_all(rd);
	if (!err)
		err = enter_thread_tables(s, &rd->regions);
	roots_finish(&s->roots);
	for (u32 i = 0; i < SNAPSHOT_PARTS; i++)
		looker_fini(&rd->parts[i]);
	region_list_fini(&rd->regions);
	glib_fini(&rd->facts.glib);
	if (err)
		return err;
	for (int i = 0; i < NR_SNAPSHOT_SKIPS; i++)
		s->result.skipped_bytes += snap->skipped_bytes[i];
	s->result.nr_unstopped = snap->nr_unstopped;
	s->result.is_complete = !s->result.skipped_bytes && !snap->nr_unstopped;
	return 0;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Free blocks of glibc that look as if they were in use: those in the caches of threads, and in fast bins. */

#include "user/census/glibc.h"
#include "user/lib/array.h"

/*
 * Each thread has a table, which is a block of its arena: a 16-bit counter for each list, then the first block of
 * each list. Since 2.42 there are 12 lists more, for large blocks, and the counters say how much room is left. A
 * thread-local variable points to the table. Since 2.32 the link of a block to the next one is disguised: by its own
 * address, without the last 12 bits. Each block of a list must be a block that the walk found, and have the size of
 * its list.
 */

enum {
	SMALL_LISTS = 64,
	LARGE_LISTS = 12,
	MAX_LISTS = SMALL_LISTS + LARGE_LISTS,
	MAX_LENGTH = 1 << 20,
	MAX_TLS = 256 << 10, /* bytes below and above a thread pointer */
	DISGUISE_BITS = 12,
	CHECK_EVERY = 4096, /* blocks between two looks at the clock */
	PIECE_WORDS = 512,  /* of thread-local data that are read at once */
};

static u64 chunk_for(const struct glibc *g, u64 bytes)
{
	return (bytes + g->layout.w + g->align - 1) / g->align * g->align;
}

/* The chunk of a table may be larger: by a rest that is too small for a chunk, and in 2.43 for a second header. */
static u32 lists_of(const struct glibc *g, u64 chunk_size)
{
	u64 old = chunk_for(g, SMALL_LISTS * (2ULL + g->layout.w));
	u64 new = chunk_for(g, MAX_LISTS * (2ULL + g->layout.w));

	if (chunk_size >= old && chunk_size <= old + g->align)
		return SMALL_LISTS;
	return chunk_size >= new &&chunk_size <= new + 2 * g->align ? MAX_LISTS : 0;
}

bool glibc_is_table_size(const struct glibc *g, u64 chunk_size)
{
	return lists_of(g, chunk_size) != 0;
}

/* A table that was read. */
struct glibc_table {
	taddr_t addr;
	u32 nr_lists;
	u16 counts[MAX_LISTS];
	u64 heads[MAX_LISTS];
};

static bool read_table(struct glibc *g, taddr_t addr, struct glibc_table *t)
{
	const struct census_block *block = census_find(g->out, addr);
	const u8 *p;
	u8 w = g->layout.w;

	if (!block)
		return false;
	t->addr = addr;
	t->nr_lists = lists_of(g, block->size + w);
	p = t->nr_lists ? census_window(g->w, addr, (size_t)t->nr_lists * (2U + w)) : NULL;
	if (!p)
		return false;
	for (u32 i = 0; i < t->nr_lists; i++) {
		const u8 *count = p + 2 * (size_t)i;

		t->counts[i] = g->w->snap->is_big_endian ? (u16)(count[0] << 8 | count[1])
							 : (u16)(count[1] << 8 | count[0]);
		t->heads[i] = census_word_of(g->w, p + 2 * (size_t)t->nr_lists + (size_t)i * w);
	}
	return true;
}

/* The block at @addr, if it may be in the list @list. */
static struct census_block *block_of(const struct glibc *g, u32 list, taddr_t addr)
{
	struct census_block *block = census_find(g->out, addr);
	u64 size = glibc_min_chunk(g) + list * g->align;

	if (!block || block->state != CENSUS_LIVE)
		return NULL;
	return list < SMALL_LISTS    ? block->size + g->layout.w == size ? block : NULL
	       : block->size >= size ? block
				     : NULL;
}

/* The number of lists with blocks, or -1 if this cannot be a table. */
static s32 rate_table(const struct glibc *g, const struct glibc_table *t)
{
	s32 nr = 0;

	for (u32 i = 0; i < t->nr_lists; i++) {
		if (t->nr_lists == SMALL_LISTS && !t->counts[i] != !t->heads[i])
			return -1;
		/* Room is left in every list, and in an empty one most. */
		if (t->nr_lists == MAX_LISTS && !t->heads[i] && t->counts[i] < t->counts[t->nr_lists - 1])
			return -1;
		if (!t->heads[i])
			continue;
		if (!block_of(g, i, t->heads[i]))
			return -1;
		nr++;
	}
	return nr;
}

/* The next block of the list @list, from the link at @at with the value @word. */
static taddr_t glibc_free_reveal(const struct glibc *g, taddr_t at, u64 word, u32 list)
{
	u64 next = word ^ (at >> DISGUISE_BITS);

	if (!next || block_of(g, list, next))
		return next;
	if (!word || block_of(g, list, word))
		return word;
	return next;
}

/* Mark the blocks of the list @list of a table. Ends past the deadline. */
static void glibc_free_mark_list(struct glibc *g, const struct glibc_table *t, u32 list)
{
	taddr_t at = t->heads[list];

	for (u32 n = 0; at && n < MAX_LENGTH; n++) {
		struct census_block *block = block_of(g, list, at);
		u64 word;

		if (!block || !census_words(g->w, at, &word, 1)) {
			census_note(g->out, at,
				    "the cache of a thread at 0x%llx lists 0x%llx, which is no free block",
				    (unsigned long long)t->addr, (unsigned long long)at);
			return;
		}
		block->state = CENSUS_CACHED;
		at = glibc_free_reveal(g, at, word, list);
		if (n % CHECK_EVERY == CHECK_EVERY - 1 && census_check_time(g->w))
			return;
	}
}

static void glibc_free_mark_table(struct glibc *g, const struct glibc_table *t)
{
	struct census_block *block = census_find(g->out, t->addr);

	for (u32 i = 0; i < t->nr_lists; i++)
		if (t->heads[i])
			glibc_free_mark_list(g, t, i);
	if (block)
		block->state = CENSUS_OWN;
}

/* Mark the tables that have blocks: lists of real blocks prove them. Also those of threads that have ended. */
static int mark_full_tables(struct glibc *g)
{
	size_t nr = 0;
	int err = 0;

	for (size_t i = 0; i < g->nr_tables && !err; i++) {
		struct glibc_table t = { 0 };
		s32 lists = read_table(g, g->tables[i], &t) ? rate_table(g, &t) : -1;

		if (lists > 0)
			glibc_free_mark_table(g, &t);
		if (lists >= 0)
			g->tables[nr++] = g->tables[i];
		err = census_check_time(g->w);
	}
	g->nr_tables = nr;
	return err;
}

static bool may_be_table(const struct glibc *g, u64 word)
{
	size_t at = array_search(i, 0, g->nr_tables, g->tables[i] < word);

	return at < g->nr_tables && g->tables[at] == word;
}

/* Some words that lie one behind the other. Those that cannot be read are zero. */
struct words_piece {
	taddr_t start, end;
	u64 words[PIECE_WORDS];
};

static void read_piece(struct glibc *g, struct words_piece *p, taddr_t start, taddr_t end)
{
	u8 w = g->layout.w;
	const u8 *bytes = start < end ? census_window(g->w, start, end - start) : NULL;

	p->start = start;
	p->end = end;
	for (taddr_t at = start; at < end; at += w) {
		u64 *word = &p->words[(at - start) / w];

		if (bytes)
			*word = census_word_of(g->w, bytes + (at - start));
		else if (!census_words(g->w, at, word, 1))
			*word = 0;
	}
}

/* Does the word at @at point to a table? *@word: the table. */
static bool points_to_table(const struct glibc *g, const struct words_piece *p, taddr_t at, u64 *word)
{
	if (at < p->start || at >= p->end)
		return false;
	*word = p->words[(at - p->start) / g->layout.w];
	return may_be_table(g, *word);
}

/* Visit the thread-local words of a thread that point to a table, until @visit returns true, or past the deadline. */
static bool for_each_pointer(struct glibc *g, taddr_t tp,
			     bool (*visit)(struct glibc *g, s64 offset, u64 table))
{
	const struct snapshot_map *map = snapshot_map_find(g->w->snap, tp ? tp : 1);
	u64 w = g->layout.w, below, above, word;
	struct words_piece up, down;

	if (!tp || tp % w || !map || !map->is_writable)
		return false;
	below = tp - map->start > MAX_TLS ? MAX_TLS : tp - map->start;
	above = map->end - tp > MAX_TLS ? MAX_TLS : map->end - tp;
	/* Near the thread pointer first: libc is one of the first with thread-local data. */
	for (u64 off = 0; off < below || off < above; off += w) {
		u64 last = off + (PIECE_WORDS - 1) * w;

		if (off / w % PIECE_WORDS == 0) {
			if (census_check_time(g->w))
				return false;
			read_piece(g, &up, tp + off, tp + (last < above ? last + w : above));
			read_piece(g, &down, tp - (last < below ? last : below),
				   off <= below ? tp - off + w : 0);
		}
		if (points_to_table(g, &up, tp + off, &word) && visit(g, (s64)off, word))
			return true;
		if (off && points_to_table(g, &down, tp - off, &word) && visit(g, -(s64)off, word))
			return true;
	}
	return false;
}

static bool glibc_free_learn_offset(struct glibc *g, s64 offset, u64 table)
{
	const struct census_block *block = census_find(g->out, table);

	if (!block || (block->state != CENSUS_OWN && g->wants_full))
		return false;
	g->table_offset = offset;
	return true;
}

/* Find where threads have the pointer to their table: where one points to a table with blocks, else to any. */
static bool glibc_free_find_offset(struct glibc *g)
{
	const struct snapshot *snap = g->w->snap;

	for (int pass = 0; pass < 2; pass++) {
		g->wants_full = pass == 0;
		for (size_t i = 0; i < snap->nr_threads; i++)
			if (for_each_pointer(g, snap->threads[i].tp, glibc_free_learn_offset))
				return true;
	}
	return false;
}

/* Mark the empty tables of threads. */
static void mark_empty_tables(struct glibc *g)
{
	const struct snapshot *snap = g->w->snap;

	if (!g->nr_tables || !glibc_free_find_offset(g))
		return;
	for (size_t i = 0; i < snap->nr_threads; i++) {
		u64 word;
		struct census_block *block;

		if (!snap->threads[i].tp ||
		    !census_words(g->w, snap->threads[i].tp + (u64)g->table_offset, &word, 1) ||
		    !may_be_table(g, word))
			continue;
		block = census_find(g->out, word);
		if (block)
			block->state = CENSUS_OWN;
	}
}

/* Mark the chunks of the fast bin @list of an arena. Ends past the deadline. */
static void mark_fast(struct glibc *g, u32 arena, u32 list, taddr_t at)
{
	u64 size = (list + 2ULL) << (g->layout.w == 8 ? 4 : 3), header = glibc_header(g);

	for (u32 n = 0; at && n < MAX_LENGTH << 4; n++) {
		struct census_block *block = census_find(g->out, at + header);
		u64 word, next;

		if (!block || block->state != CENSUS_LIVE || block->size + g->layout.w != size ||
		    !census_words(g->w, at + header, &word, 1)) {
			census_note(g->out, at, "arena %u: a fast list has 0x%llx, which is no free block",
				    arena - g->first_arena, (unsigned long long)(at + header));
			return;
		}
		block->state = CENSUS_FAST;
		next = word ^ ((at + header) >> DISGUISE_BITS);
		at = !next || census_find(g->out, next + header) ? next : word;
		if (n % CHECK_EVERY == CHECK_EVERY - 1 && census_check_time(g->w))
			return;
	}
}

int glibc_mark_free(struct glibc *g)
{
	int err = mark_full_tables(g);

	for (u32 a = g->first_arena; a < g->first_arena + g->nr_arenas && !err; a++) {
		taddr_t arena = g->out->arenas[a].addr;

		for (u32 i = 0; i < g->layout.nr_fast; i++) {
			u64 head;

			if (glibc_field(g, arena, (s64)i - 2 - g->layout.nr_fast, &head) && head)
				mark_fast(g, a, i, head);
		}
		err = census_check_time(g->w);
	}
	if (err)
		return err;
	mark_empty_tables(g);
	return census_check_time(g->w);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Walks the chunks of a segment from the first to the last, and checks each one. */

#include "user/census/glibc.h"
#include "user/lib/array.h"

/*
 * The flag of a chunk says whether the chunk before is in use, so a chunk is judged when the next one is read. The size
 * of a free chunk is written a second time behind it. Free chunks form the rings of the bins: for each link forward
 * there must be the same link back. All links of an arena are added up as hashes, in both directions; the two sums
 * agree if the links do.
 */

enum {
	CHECK_EVERY = 4096, /* chunks between two looks at the clock */
	CHAIN = 64,	    /* chunks */
	MAX_GAP = 16 << 20, /* bytes */
	LOOK_EVERY = 4096,  /* bytes of a gap between two looks at the clock */
};

struct glibc_chunk {
	taddr_t addr;
	u64 size;	   /* bytes, with the header */
	u64 first, second; /* the first two words of the program's bytes */
};

static u64 hash_link(taddr_t from, taddr_t to)
{
	return hash_u64(hash_u64(from) ^ (hash_u64(to) >> 7) ^ to);
}

/* Read the chunk at @at. False if its memory cannot be read. */
static bool glibc_chunks_read_chunk(struct glibc *g, taddr_t at, taddr_t end, struct glibc_chunk *c,
				    u64 *previous, u64 *flags)
{
	u8 w = g->w->w;
	size_t len = end - at >= 4U * w ? 4U * w : 2U * w;
	const u8 *p = census_window(g->w, at, len);

	if (!p)
		return false;
	*previous = census_word_of(g->w, p);
	*flags = census_word_of(g->w, p + w);
	*c = (struct glibc_chunk){ .addr = at, .size = *flags & ~(u64)CHUNK_FLAGS };
	if (len < 4U * w)
		return true;
	c->first = census_word_of(g->w, p + 2 * w);
	c->second = census_word_of(g->w, p + 3 * w);
	return true;
}

struct segment_walk {
	struct glibc *g;
	struct census_segment *segment;
	struct census_arena *arena;
	struct glibc_links *links;
	taddr_t top; /* of the arena */
	taddr_t end; /* chunks end here: at top, or at the end of the segment */
};

/* The chunk @c is free: check the copy of its size, and take its links. */
static void glibc_chunks_enter_free(struct segment_walk *sw, const struct glibc_chunk *c, u64 copy)
{
	u64 header = glibc_header(sw->g);

	if (copy != c->size)
		census_note(sw->g->out, c->addr,
			    "the free block at 0x%llx has %llu bytes, the copy of this behind it says %llu",
			    (unsigned long long)(c->addr + header), (unsigned long long)c->size,
			    (unsigned long long)copy);
	sw->arena->bins.blocks++;
	sw->arena->bins.bytes += c->size;
	sw->links->forward += hash_link(c->addr, c->first);
	sw->links->back += hash_link(c->second, c->addr);
}

static int note_table(struct glibc *g, const struct glibc_chunk *c)
{
	int err = array_reserve(g->tables, g->max_tables, g->nr_tables + 1);

	if (!err)
		g->tables[g->nr_tables++] = c->addr + glibc_header(g);
	return err;
}

static int enter_used(struct segment_walk *sw, const struct glibc_chunk *c)
{
	struct glibc *g = sw->g;
	/* Blocks that the program has not written have old links of the bins. */
	bool is_link = c->first - g->main < (u64)g->layout.bins + 2ULL * NR_BINS * g->layout.w;
	u32 type = 0;
	int err = is_link ? 0 : census_type_of(g->w, c->first, &type);

	if (!err)
		err = census_add_block(g->out, c->addr + glibc_header(g), c->size - g->w->w, type);
	if (!err && glibc_is_table_size(g, c->size))
		err = note_table(g, c);
	return err;
}

/* At the end of a part lie one or two chunks without bytes for the program. */
static bool is_fence(const struct segment_walk *sw, const struct glibc_chunk *c)
{
	return c->size == glibc_header(sw->g) || (c->size == 0 && sw->end - c->addr == glibc_header(sw->g));
}

/* Do chunks lead from @at to the top, or over CHAIN chunks? */
static bool is_chain(struct segment_walk *sw, taddr_t at)
{
	struct glibc *g = sw->g;

	for (u32 i = 0; i < CHAIN && at != sw->end; i++) {
		u64 words[2], size;

		if (!census_words(g->w, at, words, 2) || (i == 0 && !(words[1] & CHUNK_PREV_IN_USE)))
			return false;
		size = words[1] & ~(u64)CHUNK_FLAGS;
		if (size < glibc_min_chunk(g) || size % g->align || size > sw->end - at ||
		    (words[1] & CHUNK_IS_MAPPED))
			return false;
		at += size;
	}
	return true;
}

/* May a chunk be at @at? is_chain() would say no at once where this does. */
static bool may_be_chunk(struct segment_walk *sw, taddr_t at)
{
	struct glibc *g = sw->g;
	const u8 *p = census_window(g->w, at, 2U * g->w->w);

	return p && (census_word_of(g->w, p + g->w->w) & (CHUNK_PREV_IN_USE | CHUNK_IS_MAPPED)) ==
			    CHUNK_PREV_IN_USE;
}

/*
 * Another user of brk has taken memory behind the fence at @fence. The next part begins behind that, at the first chunk
 * from which chunks lead on: *@part, 0 = not found.
 */
static int next_part(struct segment_walk *sw, taddr_t fence, taddr_t *part)
{
	taddr_t start = fence + 2 * glibc_header(sw->g);
	int err = 0;

	*part = 0;
	for (taddr_t at = start; at < sw->end && at - start < MAX_GAP && !err; at += sw->g->align) {
		if (may_be_chunk(sw, at) && is_chain(sw, at)) {
			*part = at;
			return 0;
		}
		if ((at - start) % LOOK_EVERY == 0)
			err = census_check_time(sw->g->w);
	}
	return err;
}

/* The fault of the chunk @c, NULL if there is none. */
static const char *fault_of(const struct segment_walk *sw, const struct glibc_chunk *c, u64 flags)
{
	if (c->size < glibc_min_chunk(sw->g))
		return "it is smaller than any block";
	if (c->size % sw->g->align)
		return "its size is no multiple of the alignment";
	if (c->size > sw->end - c->addr)
		return "it leads out of its memory";
	if (flags & CHUNK_IS_MAPPED)
		return "it says that it has a mapping of its own";
	return NULL;
}

static void note_fault(struct segment_walk *sw, taddr_t at, const char *what, u64 flags)
{
	sw->arena->unknown_bytes += sw->end - at;
	census_note(
		sw->g->out, at,
		"the size word of the block at 0x%llx is 0x%llx: %s; the %llu bytes from there on are not known",
		(unsigned long long)(at + glibc_header(sw->g)), (unsigned long long)flags, what,
		(unsigned long long)(sw->end - at));
}

/* The state between two chunks. */
struct step {
	struct glibc_chunk last; /* size 0 = none: nothing is to be judged */
	taddr_t at;		 /* of the next chunk */
	bool is_over;
};

/* Judge the last chunk, because the flags of the next one are known. */
static int judge_last(struct segment_walk *sw, const struct step *st, u64 previous, u64 flags)
{
	if (!st->last.size)
		return 0;
	if (flags & CHUNK_PREV_IN_USE)
		return enter_used(sw, &st->last);
	glibc_chunks_enter_free(sw, &st->last, previous);
	return 0;
}

/* A fence ends the segment, or a part of the main arena. */
static int pass_fence(struct segment_walk *sw, struct step *st, taddr_t fence)
{
	int err;

	st->last.size = 0;
	st->is_over = true;
	if (!sw->top || sw->end - fence <= 2 * glibc_header(sw->g))
		return 0;
	err = next_part(sw, fence, &st->at);
	if (err)
		return err;
	st->is_over = !st->at;
	if (!st->at)
		note_fault(sw, fence, "it is the end of a part, and no part follows", glibc_header(sw->g));
	else
		sw->arena->foreign_bytes += st->at - fence - 2 * glibc_header(sw->g);
	return 0;
}

static int glibc_chunks_step(struct segment_walk *sw, struct step *st)
{
	struct glibc_chunk c;
	u64 previous, flags;
	const char *fault;
	int err;

	if (st->at == sw->end && st->at != sw->top) {
		st->is_over = true;
		return judge_last(sw, st, 0, CHUNK_PREV_IN_USE);
	}
	st->is_over = true;
	if (!glibc_chunks_read_chunk(sw->g, st->at, sw->segment->end, &c, &previous, &flags)) {
		note_fault(sw, st->at, "it cannot be read", 0);
		return 0;
	}
	/* The last chunk follows one in use, also while its size is not written. */
	if (st->at == sw->top)
		return judge_last(sw, st, previous, flags ? flags : CHUNK_PREV_IN_USE);
	/* The last chunk is itself a fence, where there was no room for one of its own. */
	if (c.size == 0 && is_fence(sw, &c))
		return 0;
	fault = is_fence(sw, &c) ? NULL : fault_of(sw, &c, flags);
	if (fault) {
		note_fault(sw, st->at, fault, flags);
		/* Whether the chunk before is free is not known, so it counts as live. */
		return judge_last(sw, st, 0, CHUNK_PREV_IN_USE);
	}
	err = judge_last(sw, st, previous, flags);
	st->is_over = false;
	st->last = c;
	st->at += c.size;
	if (!err && is_fence(sw, &c))
		err = pass_fence(sw, st, c.addr);
	return err;
}

int glibc_walk_segment(struct glibc *g, struct census_segment *segment, struct glibc_links *links)
{
	struct segment_walk sw = { .g = g,
				   .segment = segment,
				   .arena = &g->out->arenas[segment->arena],
				   .links = links,
				   .end = segment->end };
	struct step st = { .at = segment->start };
	int err = 0;

	sw.top = glibc_top(g, sw.arena->addr);
	if (sw.top >= segment->start && sw.top < segment->end)
		sw.end = sw.top;
	else
		sw.top = 0;
	for (u32 i = 1; !st.is_over && !err; i++) {
		err = glibc_chunks_step(&sw, &st);
		if (!err && i % CHECK_EVERY == 0)
			err = census_check_time(g->w);
	}
	return err;
}

static taddr_t bin_at(const struct glibc *g, taddr_t arena, u32 i)
{
	return arena + g->layout.bins + 2ULL * i * g->layout.w - glibc_header(g);
}

/* Follow the rings of the bins to the link that is wrong. Past the deadline nothing is noted. */
static void note_bad_link(const struct glibc *g, u32 index)
{
	const struct census_arena *arena = &g->out->arenas[index];
	u64 left = arena->bins.blocks + NR_BINS;

	for (u32 i = 0; i < NR_BINS; i++) {
		taddr_t bin = bin_at(g, arena->addr, i), at = bin;
		u64 next[2], words[2];

		do {
			if (!census_words(g->w, at + glibc_header(g), words, 2) ||
			    !census_words(g->w, words[0] + glibc_header(g), next, 2) || next[1] != at ||
			    !left--) {
				census_note(
					g->out, at,
					"arena %u: the list of free blocks is broken at 0x%llx, whose next "
					"one is 0x%llx",
					index - g->first_arena, (unsigned long long)(at + glibc_header(g)),
					(unsigned long long)(words[0] + glibc_header(g)));
				return;
			}
			at = words[0];
			if (left % CHECK_EVERY == 0 && census_check_time(g->w))
				return;
		} while (at != bin);
	}
	census_note(g->out, arena->addr, "arena %u: its lists of free blocks do not have all free blocks",
		    index - g->first_arena);
}

void glibc_check_bins(const struct glibc *g, u32 arena, const struct glibc_links *sums)
{
	struct glibc_links links = *sums;

	if (!glibc_top(g, g->out->arenas[arena].addr))
		return;
	for (u32 i = 0; i < NR_BINS; i++) {
		taddr_t bin = bin_at(g, g->out->arenas[arena].addr, i);
		u64 words[2];

		if (!census_words(g->w, bin + glibc_header(g), words, 2))
			break;
		links.forward += hash_link(bin, words[0]);
		links.back += hash_link(words[1], bin);
	}
	if (links.forward != links.back)
		note_bad_link(g, arena);
}

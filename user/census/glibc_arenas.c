/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The arenas of glibc, and the parts of memory that each has. */

#include "user/census/glibc.h"

/*
 * The main arena has the memory of brk, from its start to the end of its top chunk. Another arena has heaps: each
 * begins with the address of the arena, the heap before, and its size. The arena itself lies in its first heap, behind
 * this header; the heap with the top chunk is the last.
 */

enum {
	FIELD_NEXT = 2 * NR_BINS,
	FIELD_SYSTEM = FIELD_NEXT + 3,
	FIELD_TOP = -2,
	NOT_CONTIGUOUS = 2,
	MAX_ARENAS = 65536,
	MAX_HEAPS = 1 << 20, /* of all arenas */
	CHECK_EVERY = 256,   /* heaps between two looks at the clock */
	MIN_HEAP_BITS = 16,
	MAX_HEAP_BITS = 32,
	PAGE = 4096,
};

taddr_t glibc_top(const struct glibc *g, taddr_t arena)
{
	u64 top;

	if (!glibc_field(g, arena, FIELD_TOP, &top))
		return 0;
	/* An arena without memory points to its first bin. */
	return top == arena + g->layout.bins - 2U * g->layout.w ? 0 : top;
}

/*
 * Size of the top chunk at @top, whose memory ends at @end; 0 if none can be there. A thread that cuts a block off the
 * chunk writes first where the rest begins, then the size of the rest, and waits for new memory in between.
 */
static u64 top_size(const struct glibc *g, taddr_t top, taddr_t end)
{
	u64 words[2], size;

	if (!top || top % g->align != (g->align - glibc_header(g)) % g->align ||
	    !census_words(g->w, top, words, 2))
		return 0;
	size = words[1] || top >= end ? words[1] & ~(u64)CHUNK_FLAGS : end - top;
	return size >= glibc_min_chunk(g) && size < UINT64_MAX / 2 ? size : 0;
}

static void note_arena(const struct glibc *g, u32 arena, taddr_t at, const char *what)
{
	census_note(g->out, at, "arena %u: %s", arena - g->first_arena, what);
}

/* The first chunk of memory that begins at @start: the program's bytes are aligned. */
static taddr_t first_chunk(const struct glibc *g, taddr_t start)
{
	u64 off = (start + glibc_header(g)) % g->align;

	return off ? start + g->align - off : start;
}

static int glibc_arenas_add_segment(struct glibc *g, u32 arena, taddr_t start, taddr_t end)
{
	const struct census_segment segment = { .start = first_chunk(g, start), .end = end, .arena = arena };

	if (segment.start >= end)
		return 0;
	g->out->arenas[arena].nr_segments++;
	return census_add_segment(g->out, &segment);
}

static int add_main(struct glibc *g, u32 index)
{
	struct census_arena *arena = &g->out->arenas[index];
	taddr_t top = glibc_top(g, g->main), start;
	const struct snapshot_map *map = snapshot_map_find(g->w->snap, top);
	u64 size = top_size(g, top, map ? map->end : 0);

	if (!top)
		return 0;
	if (!size) {
		note_arena(g, index, top, "its last chunk is damaged");
		arena->unknown_bytes = arena->system_bytes;
		return 0;
	}
	arena->top_bytes = size - glibc_header(g);
	start = top + size - arena->system_bytes;
	map = snapshot_map_find(g->w->snap, start);
	if (arena->system_bytes > top + size || !map || !census_is_anonymous(map) || start > top) {
		note_arena(g, index, top, "its memory does not lie in one piece");
		arena->unknown_bytes = arena->system_bytes > size ? arena->system_bytes - size : 0;
		return 0;
	}
	g->brk_start = start;
	return glibc_arenas_add_segment(g, index, start, top + size);
}

/* Size of the header of a heap: the arena at @addr begins behind it. */
static u64 heap_header(const struct glibc *g, taddr_t addr)
{
	u64 words[1], base = addr & ~(u64)(PAGE - 1);

	return addr - base >= 4U * g->layout.w && census_words(g->w, base, words, 1) && words[0] == addr
		       ? addr - base
		       : 0;
}

/* The heap of @arena that holds @chunk, 0 if there is none. Heaps are aligned to their largest size. */
static taddr_t heap_of(const struct glibc *g, taddr_t arena, taddr_t chunk)
{
	for (u32 bits = MIN_HEAP_BITS; bits <= MAX_HEAP_BITS; bits++) {
		taddr_t base = chunk & ~((1ULL << bits) - 1);
		u64 words[4];

		if (census_words(g->w, base, words, 4) && words[0] == arena && words[2] > chunk - base &&
		    words[2] <= words[3])
			return base;
	}
	return 0;
}

/* Add the heaps of @arena from the last one, at @base, to the first one. They have the bytes that the arena has. */
static int add_heaps(struct glibc *g, u32 index, taddr_t arena, taddr_t base)
{
	u64 header = heap_header(g, arena),
	    size = g->layout.bins + 2ULL * NR_BINS * g->layout.w + 16 + 5ULL * g->layout.w;
	u64 sum = 0;

	for (u32 i = 0; base; i++) {
		u64 words[4];
		bool is_first = base == arena - header;
		int err;

		if (i == MAX_HEAPS || g->out->nr_segments >= MAX_HEAPS ||
		    !census_words(g->w, base, words, 4) || words[0] != arena || words[2] > words[3] ||
		    !words[2] || words[2] % PAGE || (words[1] == 0) != is_first) {
			note_arena(g, index, base, "the header of a heap is damaged");
			break;
		}
		err = glibc_arenas_add_segment(g, index, is_first ? arena + size : base + header,
					       base + words[2]);
		if (!err && i % CHECK_EVERY == 0)
			err = census_check_time(g->w);
		if (err)
			return err;
		sum += words[2];
		base = sum > g->out->arenas[index].system_bytes ? 0 : words[1];
	}
	if (sum != g->out->arenas[index].system_bytes)
		census_note(g->out, arena, "arena %u: its heaps have %llu bytes, its books say %llu",
			    index - g->first_arena, (unsigned long long)sum,
			    (unsigned long long)g->out->arenas[index].system_bytes);
	return 0;
}

static int add_other(struct glibc *g, u32 index, taddr_t arena)
{
	struct census_arena *entry = &g->out->arenas[index];
	taddr_t top = glibc_top(g, arena), base = heap_header(g, arena) ? heap_of(g, arena, top) : 0;
	u64 words[4] = { 0 }, size;

	if (base && !census_words(g->w, base, words, ARRAY_SIZE(words)))
		base = 0;
	size = top_size(g, top, base + words[2]);
	if (!base || !size) {
		note_arena(g, index, arena,
			   base ? "its last chunk is damaged" : "its heaps are not where they must be");
		entry->unknown_bytes = entry->system_bytes;
		return 0;
	}
	entry->top_bytes = size - glibc_header(g);
	return add_heaps(g, index, arena, base);
}

/* The lock is the first word. */
static bool is_locked(const struct glibc *g, taddr_t arena)
{
	u64 word;

	return census_words(g->w, arena, &word, 1) && (u32)word;
}

int glibc_add_arenas(struct glibc *g)
{
	u64 at = g->main;
	int err = 0;

	g->first_arena = (u32)g->out->nr_arenas;
	g->align = g->layout.w == 4 && g->layout.nr_fast == 10 ? 8 : 16;
	for (u32 i = 0; i < MAX_ARENAS && !err; i++) {
		struct census_arena arena = { .addr = at, .is_locked = is_locked(g, at) };
		u32 index = (u32)g->out->nr_arenas;

		if (!glibc_field(g, at, FIELD_SYSTEM, &arena.system_bytes))
			break;
		err = census_add_arena(g->out, &arena);
		g->nr_arenas++;
		if (!err)
			err = i ? add_other(g, index, at) : add_main(g, index);
		if (!err)
			err = census_check_time(g->w);
		if (!glibc_field(g, at, FIELD_NEXT, &at) || at == g->main)
			break;
	}
	return err;
}

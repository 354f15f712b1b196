/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds glibc's main arena and its counters in the data of libc, by what must be true of them. */
#include <errno.h>
#include <stdlib.h>

#include "user/census/glibc.h"
#include "user/lib/cleanup.h"

/*
 * An arena has 127 bins. Each is a pair of pointers to the last and the first chunk of a ring, which the bin itself is
 * part of: an empty bin points to the place two words before itself. The last bin is always empty. Behind the bins are
 * 16 bytes of bits, then the next arena of the ring, the next unused arena, the number of its threads, and the bytes
 * that it has taken from the kernel. The ring must lead back, and so says where the main arena begins.
 */

enum {
	MAX_DATA = 4 << 20, /* bytes of a file's data that are searched */
	MAX_ARENAS = 65536,
	CHECK_EVERY = 256,	  /* arenas between two looks at the clock */
	FIELD_NEXT = 2 * NR_BINS, /* words, and 16 bytes of bits */
	BITS = 16,
	DEFAULT_MAX_MAPPED = 65536,
};

static const struct glibc_layout layouts[] = {
	{ 8, 10, 112 }, /* 2.27 */
	{ 8, 0, 24 },	/* 2.43 */
	{ 4, 11, 64 },	/* 2.27, blocks aligned to 16 bytes */
	{ 4, 10, 60 },	/* 2.27, to 8 bytes */
	{ 4, 0, 16 },	/* 2.43 */
};

bool glibc_field(const struct glibc *g, taddr_t arena, s64 index, u64 *value)
{
	taddr_t at = arena + g->layout.bins + (u64)(index * g->layout.w);

	return census_words(g->w, index >= FIELD_NEXT ? at + BITS : at, value, 1);
}

/* Does the ring of arenas that begins at @arena lead back to it? Past the deadline: no. */
static bool is_ring(const struct glibc *g, taddr_t arena)
{
	u64 at = arena;

	for (u32 i = 0; i < MAX_ARENAS; i++) {
		if (i % CHECK_EVERY == 0 && census_check_time(g->w))
			return false;
		if (!glibc_field(g, at, FIELD_NEXT, &at) || !at)
			return false;
		if (at == arena)
			return true;
	}
	return false;
}

/* Are there bins that begin at @at, which has the address @addr? */
static bool are_bins(const struct glibc *g, const u8 *at, taddr_t addr)
{
	u8 w = g->w->w;

	for (u32 i = 0; i < NR_BINS; i++, at += 2 * w, addr += 2U * w) {
		u64 first = census_word_of(g->w, at), last = census_word_of(g->w, at + w);
		u64 itself = addr - 2U * w;

		if ((first == itself) != (last == itself) || !first || !last || (first | last) % w)
			return false;
	}
	return true;
}

/* Take the layout for bins at @bins in which the ring of arenas leads back. */
static bool choose_layout(struct glibc *g, taddr_t bins)
{
	for (size_t i = 0; i < ARRAY_SIZE(layouts); i++) {
		if (layouts[i].w != g->w->w)
			continue;
		g->layout = layouts[i];
		g->main = bins - g->layout.bins;
		if (is_ring(g, g->main))
			return true;
	}
	return false;
}

/* Look for a main arena in @len bytes at @start, which are copied to @bytes. */
static bool glibc_find_look(struct glibc *g, const u8 *bytes, taddr_t start, size_t len)
{
	u8 w = g->w->w;
	size_t size = (size_t)2 * NR_BINS * w;

	for (size_t last = size - 2U * w; last + 2U * w + BITS + w <= len; last += w) {
		size_t at = last + 2U * w - size;
		u64 itself = start + last - 2U * w;

		if (census_word_of(g->w, bytes + last) == itself && are_bins(g, bytes + at, start + at) &&
		    choose_layout(g, start + at))
			return true;
	}
	return false;
}

int glibc_find(struct glibc *g, size_t *map)
{
	const struct snapshot *snap = g->w->snap;
	auto_free u8 *bytes = malloc(MAX_DATA);
	int err = bytes ? 0 : -ENOMEM;

	for (; *map < snap->nr_maps && !err; ++*map) {
		taddr_t start = snap->maps[*map].start, end = page_reader_data_end(snap, *map);
		size_t len = end - start < MAX_DATA ? end - start : MAX_DATA;

		if (!end)
			continue;
		g->data_start = start;
		g->data_end = end;
		census_copy_data(g->w, start, bytes, len);
		if (glibc_find_look(g, bytes, start, len)) {
			++*map;
			return 0;
		}
		err = census_check_time(g->w);
	}
	return err ? err : -ENOENT;
}

/* The fields around brk_start, whose place is @at: mapped blocks, their most, whether that is fixed, their bytes. */
static bool are_counters(struct glibc *g, const u8 *at, bool is_padded)
{
	u8 w = g->w->w;
	u64 most_bytes = census_word_of(g->w, at - w), bytes = census_word_of(g->w, at - 2 * w);
	const u8 *fixed = at - 2 * w - (is_padded ? 8 : 4);
	u32 now, limit, most, is_fixed;
	struct {
		u32 *value;
		s32 offset;
	} ints[] = { { &is_fixed, 0 }, { &most, -4 }, { &limit, -8 }, { &now, -12 } };

	for (size_t i = 0; i < ARRAY_SIZE(ints); i++) {
		const u8 *p = fixed + ints[i].offset;

		*ints[i].value = g->w->snap->is_big_endian
					 ? (u32)p[0] << 24 | (u32)p[1] << 16 | (u32)p[2] << 8 | p[3]
					 : (u32)p[3] << 24 | (u32)p[2] << 16 | (u32)p[1] << 8 | p[0];
	}
	if (bytes > most_bytes || now > most || is_fixed > 1 || (bytes | most_bytes) % 4096 || !now != !bytes)
		return false;
	/* Where nothing was mapped yet, the limit must be the usual one. */
	if (!most_bytes ? most || limit != DEFAULT_MAX_MAPPED : most > limit)
		return false;
	g->nr_mapped = now;
	g->mapped_bytes = bytes;
	return true;
}

int glibc_find_counters(struct glibc *g)
{
	u64 whole = g->data_end - g->data_start;
	size_t len = whole < MAX_DATA ? whole : MAX_DATA, before = 2U * g->w->w + 8 + 12;
	auto_free u8 *bytes = malloc(len);

	if (!bytes)
		return -ENOMEM;
	census_copy_data(g->w, g->data_start, bytes, len);
	for (size_t at = (before + 7) / 8 * 8; at + g->w->w <= len && !g->has_counters; at += g->w->w) {
		if (census_word_of(g->w, bytes + at) != g->brk_start)
			continue;
		g->has_counters = are_counters(g, bytes + at, false) ||
				  (g->w->w == 8 && are_counters(g, bytes + at, true));
	}
	return 0;
}

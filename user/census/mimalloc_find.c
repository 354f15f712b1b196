/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds the segments of mimalloc by their cookies. */
#include <errno.h>
#include <stdlib.h>

#include "user/census/mimalloc.h"
#include "user/lib/array.h"
#include "user/lib/cleanup.h"

/*
 * Words of the header of a segment, from its start. The number that disguises the cookies lies in the data of the
 * library, in the first heap. It is random, and has 64 bits. Thousands of places are looked at in a large process, and
 * one page of each is read if it is in memory.
 */

enum {
	NR_WORDS = 46,
	MAX_SLICES = 1 << 27,
	MAX_DATA = 16 << 20, /* bytes of a file's data that are searched */
	CHECK_EVERY = 1024,
};

/* Is there a header at @at that may be one? *@disguise is what its cookie says. */
static bool may_be_segment(const struct mimalloc *m, taddr_t at, struct mimalloc_segment *out, u64 *disguise)
{
	const struct mimalloc_layout *l = m->layout;
	u64 words[NR_WORDS];

	if (snapshot_peek(m->w->snap, at, words, sizeof(words)) != 0)
		return false;
	*disguise = words[l->cookie] ^ at;
	*out = (struct mimalloc_segment){ .addr = at,
					  .nr_slices = words[l->slices],
					  .nr_info = (u32)words[l->info],
					  .nr_entries = (u32)words[l->entries] };
	/* A pointer to near the place makes a small number, which any data have. */
	return *disguise >> 32 && words[l->cookie] && words[l->slices] && words[l->slices] <= MAX_SLICES &&
	       words[l->info] && words[l->info] <= MIMALLOC_MAX_INFO && (u32)words[l->kind] <= 1 &&
	       words[l->entries] > words[l->info] && words[l->entries] <= MIMALLOC_NR_SLICES &&
	       words[l->entries] <= words[l->slices] && words[l->used] <= words[l->entries];
}

static int mimalloc_find_add_segment(struct mimalloc *m, const struct mimalloc_segment *segment)
{
	int err = array_reserve(m->segments, m->max_segments, m->nr_segments + 1);

	if (!err)
		m->segments[m->nr_segments++] = *segment;
	return err;
}

/*
 * Look for headers in [@at, @end), which is in one mapping. Without m->disguise, take the disguise of the first one and
 * return where it is. Returns @end when all was looked at.
 */
static taddr_t find_in_map(struct mimalloc *m, taddr_t at, taddr_t end, int *err)
{
	for (u32 n = 1; !*err; n++) {
		taddr_t place = (at + MIMALLOC_SEGMENT - 1) / MIMALLOC_SEGMENT * MIMALLOC_SEGMENT;
		struct mimalloc_segment segment;
		u64 disguise;

		if (place < at || place >= end)
			break;
		/* Memory that is only reserved may have millions of places. */
		at = snapshot_next(m->w->snap, place, end);
		if (n % CHECK_EVERY == 0)
			*err = census_check_time(m->w);
		if (at >= place + m->w->page)
			continue;
		at = place + 1;
		if (!may_be_segment(m, place, &segment, &disguise))
			continue;
		if (!m->disguise) {
			m->disguise = disguise;
			return place;
		}
		if (disguise == m->disguise)
			*err = mimalloc_find_add_segment(m, &segment);
	}
	return end;
}

/* Look at all places from *@at on where a segment may begin. *@at: behind the header that m->disguise is from. */
static int find_segments(struct mimalloc *m, taddr_t *at)
{
	const struct snapshot *snap = m->w->snap;
	int err = 0;

	for (size_t i = 0; i < snap->nr_maps && !err; i++) {
		const struct snapshot_map *map = &snap->maps[i];
		bool is_known = m->disguise != 0;
		taddr_t found;

		if (!census_is_anonymous(map))
			continue;
		found = find_in_map(m, map->start < *at ? *at : map->start, map->end, &err);
		if (!is_known && m->disguise) {
			*at = found + 1;
			return err;
		}
	}
	return err ? err : m->disguise ? 0 : -ENOENT;
}

/* Has the data of a file the number that disguises the cookies? */
static bool is_in_data(const struct mimalloc *m, u8 *bytes)
{
	const struct snapshot *snap = m->w->snap;

	for (size_t i = 0; i < snap->nr_maps; i++) {
		taddr_t start = snap->maps[i].start, end = page_reader_data_end(snap, i);
		size_t len = end - start < MAX_DATA ? end - start : MAX_DATA;

		if (!end)
			continue;
		census_copy_data(m->w, start, bytes, len);
		for (size_t at = 0; at + 8 <= len; at += 8)
			if (census_word_of(m->w, bytes + at) == m->disguise)
				return true;
	}
	return false;
}

int mimalloc_find(struct mimalloc *m)
{
	auto_free u8 *bytes = NULL;
	taddr_t at = 0;
	int err = 0;

	if (m->w->snap->word_size != 8 || m->w->snap->is_big_endian)
		return -ENOENT;
	/* A few places may look like a header and be none. */
	for (int tries = 0; tries < 8 && !err; tries++) {
		m->disguise = 0;
		err = find_segments(m, &at);
		if (!err && !bytes)
			bytes = malloc(MAX_DATA);
		if (!err && !bytes)
			err = -ENOMEM;
		if (!err && is_in_data(m, bytes)) {
			at = 0;
			return find_segments(m, &at);
		}
	}
	return err ? err : -ENOENT;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Blocks of glibc with a mapping of their own. */

#include "user/census/glibc.h"
#include "user/lib/array.h"

/*
 * The chunk of such a block has the flag for it. The word before its size says how many bytes of the mapping lie before
 * the chunk: none, or what an alignment needed. All of it ends with a page. The kernel joins mappings that touch, so
 * several blocks may lie in one. The counters of glibc say how many there are, and how many bytes they have: the search
 * ends when these are found, and a sum that differs is noted.
 *
 * The first pass looks where a mapping begins, and behind each block that it finds. The second one looks at all pages,
 * but at no more than MAX_PAGES of a mapping: a core may say that it has any number.
 */

enum {
	HUGE_FLAG = 1,
	MAX_PAGES = 1 << 24, /* of a mapping that are searched */
};

struct mapped_search {
	struct glibc *g;
	u64 nr, bytes;	    /* found */
	size_t nr_known;    /* segments that were found before this pass, by address */
	bool is_every_page; /* the second pass */
};

/*
 * The mapping of the chunk at @chunk, whose first words are at @p: within [@floor, @end). False if no such chunk is
 * there.
 */
static bool is_mapped_chunk(const struct glibc *g, taddr_t chunk, const u8 *p, taddr_t floor, taddr_t end,
			    struct census_segment *segment)
{
	u64 before = census_word_of(g->w, p), size = census_word_of(g->w, p + g->w->w);
	bool is_new = g->layout.nr_fast == 0;
	u64 extra = is_new ? glibc_header(g) : 0;

	if ((size & CHUNK_FLAGS) != CHUNK_IS_MAPPED)
		return false;
	size &= ~(u64)CHUNK_FLAGS;
	before &= is_new ? ~(u64)HUGE_FLAG : UINT64_MAX;
	if (before > chunk - floor || (chunk - before) % g->w->page || size < glibc_min_chunk(g))
		return false;
	if (size > end - chunk || extra > end - chunk - size || (chunk + size + extra) % g->w->page)
		return false;
	*segment = (struct census_segment){ .start = chunk - before,
					    .end = chunk + size + extra,
					    .arena = g->first_arena,
					    .is_mapped = true,
					    .first = chunk };
	return true;
}

/*
 * An aligned block was cut out of a block that began earlier, whose header is still there. If @segment has such a cut
 * chunk, at an aligned place and with the same end, take this one.
 */
static void take_aligned(const struct glibc *g, struct census_segment *segment)
{
	taddr_t first = segment->first, mem = first + glibc_header(g), end = segment->end;

	for (u64 align = 2 * g->align; align && align < end - mem; align *= 2) {
		taddr_t aligned = (mem + align - 1) / align * align;

		for (u32 i = 0; i < 2 && aligned < end; i++, aligned += align) {
			struct census_segment cut;
			u8 head[2 * 8];

			if (aligned - mem < glibc_min_chunk(g) ||
			    snapshot_peek(g->w->snap, aligned - glibc_header(g), head, glibc_header(g)) != 0)
				continue;
			if (is_mapped_chunk(g, aligned - glibc_header(g), head, segment->start, end, &cut) &&
			    cut.start == segment->start && cut.end == end)
				segment->first = cut.first;
		}
	}
}

/* Find a chunk in the page at @at. Its program's bytes are aligned to a power of two. */
static bool find_chunk(struct glibc *g, taddr_t at, taddr_t floor, taddr_t end,
		       struct census_segment *segment)
{
	const u8 *page;
	u8 byte;

	/* A page that was never touched has no chunk. Reading it would make one. */
	if (snapshot_peek(g->w->snap, at, &byte, 1) != 0)
		return false;
	page = census_window(g->w, at, g->w->page);
	if (!page)
		return false;
	for (u64 mem = glibc_header(g); mem <= g->w->page; mem *= 2) {
		u64 off = mem - glibc_header(g);

		if (!is_mapped_chunk(g, at + off, page + off, floor, end, segment))
			continue;
		take_aligned(g, segment);
		return true;
	}
	return false;
}

/* If a known segment holds part of the page at @at, its end, else 0. */
static taddr_t known_end(const struct mapped_search *m, taddr_t at)
{
	const struct census_segment *segments = m->g->out->segments;
	size_t i = array_search(n, 0, m->nr_known, segments[n].end <= at);
	u64 page = m->g->w->page;

	if (i == m->nr_known || segments[i].start >= at + page)
		return 0;
	return (segments[i].end + page - 1) / page * page;
}

static int glibc_mapped_search(struct mapped_search *m, taddr_t start, taddr_t end)
{
	struct glibc *g = m->g;
	taddr_t floor = start;
	u32 left = MAX_PAGES;
	int err = 0;

	for (taddr_t at = start; at < end && m->nr < g->nr_mapped && !err;) {
		struct census_segment segment;
		taddr_t known = known_end(m, at);

		if (known) {
			at = floor = known;
			continue;
		}
		if (find_chunk(g, at, floor, end, &segment)) {
			m->nr++;
			m->bytes += segment.end - segment.start;
			err = census_add_segment(g->out, &segment);
			at = floor = segment.end;
		} else if (!m->is_every_page) {
			break;
		} else if (!left--) {
			census_note(g->out, at,
				    "the mapping at 0x%llx is too large to be searched to its end",
				    (unsigned long long)start);
			break;
		} else {
			at = snapshot_next(g->w->snap, at + g->w->page, end);
		}
		if (!err)
			err = census_check_time(g->w);
	}
	return err;
}

static int search_all(struct mapped_search *m, bool is_every_page)
{
	const struct snapshot *snap = m->g->w->snap;
	int err = 0;

	census_sort_segments(m->g->out);
	m->nr_known = m->g->out->nr_segments;
	m->is_every_page = is_every_page;
	for (size_t i = 0; i < snap->nr_maps && m->nr < m->g->nr_mapped && !err; i++)
		if (census_is_anonymous(&snap->maps[i]))
			err = glibc_mapped_search(m, snap->maps[i].start, snap->maps[i].end);
	return err;
}

int glibc_add_mapped(struct glibc *g)
{
	struct mapped_search m = { .g = g };
	int err;

	if (!g->has_counters) {
		census_note(g->out, 0, "the counters of blocks with a mapping of their own were not found");
		g->nr_mapped = UINT64_MAX;
	}
	err = search_all(&m, false);
	if (!err)
		err = search_all(&m, true);
	if (!err && g->has_counters && (m.nr != g->nr_mapped || m.bytes != g->mapped_bytes))
		census_note(
			g->out, 0,
			"%llu blocks with a mapping of their own were found, of %llu bytes; its books say %llu "
			"of %llu bytes",
			(unsigned long long)m.nr, (unsigned long long)m.bytes,
			(unsigned long long)g->nr_mapped, (unsigned long long)g->mapped_bytes);
	return err;
}

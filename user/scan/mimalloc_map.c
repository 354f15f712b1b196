/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds and reads the pages of mimalloc 1 and 3. For user/scan/scan_mimalloc.c and user/census/mimalloc.c. */
#include "user/scan/mimalloc_map.h"

#include <errno.h>
#include <string.h>

#include "user/lib/array.h"
#include "user/scan/snapshot.h"

enum {
	SLICE_SHIFT = 16,
	SLICE = 1 << SLICE_SHIFT,
	TABLE_SHIFT = 29, /* of the addresses that a table is for */
	TABLE_BYTES = 64 << 10,
	MIN_ENTRIES = 1 << 12,
	MAX_ENTRIES = 1 << 20,
	MAX_HEADER = 32,     /* words before the root */
	MAX_DATA = 16 << 20, /* bytes of a file's data that are searched */
	MAX_LOOKS = 1 << 24, /* words of tables */
	MAX_TRIED = 512,     /* pages that choose a layout */
	MAX_WRONG = 16,	     /* one of so many */
	MAX_WORDS = 16,
	HUGE_SLOT = 1 << 30,
	IN_ARENA = 7, /* kind of memory */
	ADDRESS_BITS = 47,
	SEGMENT = 4 << 20, /* version 1 */
	MAX_INFO = 1 << 16,
	IS_USED_BIT = 8, /* of the first word of an entry */
	LAST_KIND = 3,	 /* one block alone */
	LAST_SHARED = 1, /* kind of pages of which a segment has several */
};

/* From where the place of the first block is counted; START_MULTIPLE: at a multiple of the size of blocks. */
enum mimalloc_start { START_AT, START_WORDS, START_BYTES, START_MULTIPLE };

/* Where a segment of version 1 has what, in words. Its entries are the descriptions of pages. */
struct segment_layout {
	u8 size, capacity, info, cookie, shift, kind, table, entry;
};

/* Where a version has what. Places are in words; numbers of blocks have 16 bits. */
struct mimalloc_map_layout {
	const char *version;
	const struct segment_layout *segment; /* NULL: there is a map */
	u8 flags, aligned_bit, free, local, other, slot, slot_shift, used, counts, counts_shift, start,
		memory, heap;
	enum mimalloc_start how;
	u16 delayed; /* in a heap, in bytes: blocks that other threads have freed */
};

static const struct segment_layout segment_182 = { 4, 11, 12, 13, 14, 16, 17, 8 },
				   segment_184 = { 4, 11, 12, 13, 15, 16, 17, 10 },
				   segment_189 = { 4, 12, 13, 14, 18, 19, 20, 10 };

static const struct mimalloc_map_layout layouts[] = {
	{ "3.0 to 3.3", NULL, 0, 1, 1, 3, 4, 5, 0, 2, 2, 16, 6, 12, 0, START_AT, 0 },
	{ "3.4", NULL, 0, 1, 1, 3, 4, 5, 0, 2, 2, 16, 6, 11, 0, START_WORDS, 0 },
	{ "since 3.4", NULL, 0, 1, 1, 3, 7, 4, 0, 2, 6, 0, 5, 12, 0, START_BYTES, 0 },
	{ "since 3.4", NULL, 1, 1, 2, 4, 8, 5, 0, 3, 7, 0, 6, 13, 0, START_BYTES, 0 },
	{ "1.9", &segment_189, 0, 49, 1, 2, 6, 4, 0, 3, 0, 16, 5, 0, 7, START_AT, 8 },
	{ "1.8", &segment_184, 0, 49, 1, 2, 6, 4, 0, 3, 0, 16, 5, 0, 7, START_AT, 8 },
	{ "1.8", &segment_182, 0, 49, 1, 3, 4, 2, 32, 2, 0, 16, 0, 0, 5, START_MULTIPLE, 2840 },
};

/* The pages of the segment at @addr. -ENOENT: it is none. */
static int each_in_segment(struct mimalloc_map *m, taddr_t addr,
			   int (*visit)(void *ctx, const struct mimalloc_map_run *run), void *ctx)
{
	const struct segment_layout *l = m->layout->segment;
	u64 size = page_reader_at(&m->top, addr + l->size * 8),
	    shift = page_reader_at(&m->top, addr + l->shift * 8),
	    nr = page_reader_at(&m->top, addr + l->capacity * 8),
	    info = page_reader_at(&m->top, addr + l->info * 8),
	    cookie = page_reader_at(&m->top, addr + l->cookie * 8);
	u32 kind = (u32)page_reader_at(&m->top, addr + l->kind * 8);
	int err = 0;

	if (kind > LAST_KIND || !size || size % READER_PAGE || size >> ADDRESS_BITS || !info ||
	    info > MAX_INFO || !nr || shift < SLICE_SHIFT ||
	    (kind <= LAST_SHARED ? nr << shift != size : nr != 1) || !((cookie ^ addr) >> 32) ||
	    (m->disguise && (cookie ^ addr) != m->disguise))
		return -ENOENT;
	m->disguise = cookie ^ addr;
	for (u64 i = 0; i < nr && !err; i++) {
		struct mimalloc_map_run run = { .start = addr + (i ? i << shift : info),
						.end = kind <= LAST_SHARED ? addr + ((i + 1) << shift)
									   : addr + size,
						.books = addr + (l->table + i * l->entry) * 8 };

		if (page_reader_at(&m->top, run.books) >> IS_USED_BIT & 1)
			err = visit(ctx, &run);
	}
	return err;
}

/* All segments. The first one says by what number their cookies are disguised. */
static int each_segment(struct mimalloc_map *m, int (*visit)(void *ctx, const struct mimalloc_map_run *run),
			void *ctx)
{
	const struct snapshot *snap = m->top.snap;
	int err = 0;

	for (size_t i = 0; i < snap->nr_maps && !err; i++) {
		taddr_t at = snap->maps[i].start, end = snap->maps[i].end;

		while (page_reader_own(snap, snap->maps[i].start) && !err) {
			at = (at + SEGMENT - 1) / SEGMENT * SEGMENT;
			at = at < end ? snapshot_next(m->top.snap, at, end) : end;
			if (at >= end)
				break;
			if (at % SEGMENT < READER_PAGE)
				err = each_in_segment(m, at - at % SEGMENT, visit, ctx);
			err = err == -ENOENT ? 0 : err;
			at++;
		}
	}
	return err;
}

int mimalloc_map_each(struct mimalloc_map *m, int (*visit)(void *ctx, const struct mimalloc_map_run *run),
		      void *ctx)
{
	struct mimalloc_map_run run = { 0 };
	taddr_t at = m->root, end = at + m->nr_entries * 8;
	u64 table, books;
	int err = 0;

	if (m->layout->segment)
		return each_segment(m, visit, ctx);
	m->nr_looks = 0;
	while (!err && (table = page_reader_next(&m->top, &at, end))) {
		taddr_t base = (at - 8 - m->root) / 8 << TABLE_SHIFT, slot = table;

		while (!err && page_reader_own(m->top.snap, table) && m->nr_looks++ < MAX_LOOKS &&
		       (books = page_reader_next(&m->sub, &slot, table + TABLE_BYTES))) {
			taddr_t slice = base + ((slot - 8 - table) / 8 << SLICE_SHIFT);

			if (run.books == books && run.end == slice) {
				run.end += SLICE;
				continue;
			}
			/* Address 0 has a description, too, of an empty page. */
			err = run.start ? visit(ctx, &run) : 0;
			run = (struct mimalloc_map_run){ slice, slice + SLICE, books };
		}
	}
	return err || !run.start ? err : visit(ctx, &run);
}

/* The first block of the page of @run. */
static taddr_t first_block(const struct mimalloc_map_layout *l, const struct mimalloc_map_run *run,
			   const u64 *words, u64 slot)
{
	switch (l->how) {
	case START_AT:
		return words[l->start];
	case START_WORDS:
		return run->books + (u64)(u32)words[l->start] * 8;
	case START_BYTES:
		return run->start + words[l->start];
	default:
		/* Only the first page of a segment, behind the books, begins elsewhere. */
		return slot && slot <= SEGMENT / 32 ? (run->start + slot - 1) / slot * slot : run->start;
	}
}

bool mimalloc_map_page(struct mimalloc_map *m, const struct mimalloc_map_run *run,
		       struct mimalloc_map_page *out)
{
	const struct mimalloc_map_layout *l = m->layout;
	u64 words[MAX_WORDS], slot;
	taddr_t last;

	if (run->books % 8 || run->books >> ADDRESS_BITS)
		return false;
	for (u32 i = 0; i < MAX_WORDS; i++)
		words[i] = page_reader_at(&m->page, run->books + i * 8);
	slot = words[l->slot] >> l->slot_shift;
	*out = (struct mimalloc_map_page){
		.first = run->start % SLICE || l->how != START_MULTIPLE ? first_block(l, run, words, slot)
									: run->start,
		.end = run->end,
		.slot = slot,
		.capacity = words[l->counts] >> l->counts_shift & 0xffff,
		.reserved = words[l->counts] >> (l->counts_shift + 16) & 0xffff,
		.used = words[l->used] & 0xffff,
		.lists = { words[l->free], words[l->local], words[l->other] & ~3ULL },
		.heap = l->heap ? words[l->heap] : 0,
		.arena = l->segment				 ? run->books & ~(taddr_t)(SEGMENT - 1)
			 : (u32)words[l->memory + 2] == IN_ARENA ? words[l->memory]
								 : 0,
		.has_aligned = words[l->flags] >> l->aligned_bit & 1,
	};
	/* Larger sizes have no room in 32 bits. */
	if (l->slot_shift && out->reserved == 1 && slot >= HUGE_SLOT)
		out->slot = run->end - out->first;
	if (!out->slot || out->slot % 8 || out->slot >> ADDRESS_BITS || out->first < run->start ||
	    out->first >> ADDRESS_BITS || !out->reserved || out->capacity > out->reserved ||
	    out->used > out->capacity)
		return false;
	last = out->first + out->reserved * out->slot;
	/* The map need not have all of a block that has a page of its own, nor the last slice of a page. */
	if (last > out->end && out->reserved > 1 && last - out->end >= SLICE)
		return false;
	if (last > out->end)
		out->end = (last + READER_PAGE - 1) & ~(taddr_t)(READER_PAGE - 1);
	else if (out->reserved > 1 && (out->end - out->first) / out->slot != out->reserved)
		return false;
	for (u32 i = 0; i < 3; i++) {
		u64 at = out->lists[i] - out->first;

		if (out->lists[i] && (at % out->slot || at / out->slot >= out->capacity))
			return false;
	}
	return true;
}

static int try_page(void *ctx, const struct mimalloc_map_run *run)
{
	struct mimalloc_map *m = ctx;
	struct mimalloc_map_page page;

	++*(mimalloc_map_page(m, run, &page) ? &m->nr_right : &m->nr_wrong);
	return m->nr_right + m->nr_wrong == MAX_TRIED;
}

/* Choose the layout with most pages, of those with or without segments. False: none fits. */
static bool choose_layout(struct mimalloc_map *m, bool has_segments)
{
	const struct mimalloc_map_layout *found = NULL;
	u64 disguise = 0;
	size_t best = 0;

	for (size_t k = 0; k < ARRAY_SIZE(layouts); k++) {
		if (!layouts[k].segment == has_segments)
			continue;
		m->layout = &layouts[k];
		m->nr_right = m->nr_wrong = m->disguise = 0;
		if (mimalloc_map_each(m, try_page, m) < 0 || m->nr_right <= best ||
		    m->nr_wrong > m->nr_right / MAX_WRONG)
			continue;
		best = m->nr_right;
		found = m->layout;
		disguise = m->disguise;
	}
	m->layout = found;
	m->disguise = disguise;
	m->nr_right = best;
	return found;
}

/* Is the map at @root, whose first word leads to @table? */
static bool try_root(struct mimalloc_map *m, taddr_t root, taddr_t table)
{
	u64 nr = (table - root) / 8;

	if (nr < MIN_ENTRIES || nr > MAX_ENTRIES || nr & (nr - 1) || table != root + nr * 8 ||
	    !page_reader_own(m->top.snap, table))
		return false;
	m->root = root;
	m->nr_entries = nr;
	return choose_layout(m, false);
}

/* The root lies where @word leads, or behind a header there. */
static bool try_word(struct mimalloc_map *m, u64 word)
{
	if (word % READER_PAGE || !page_reader_own(m->top.snap, word))
		return false;
	for (u32 i = 0; i < MAX_HEADER; i++) {
		u64 table = page_reader_at(&m->top, word + i * 8);

		if (table > word && try_root(m, word + i * 8, table))
			return true;
	}
	return false;
}

static bool find_in(struct mimalloc_map *m, taddr_t at, taddr_t end)
{
	struct page_reader data = { 0 };
	u64 word;

	page_reader_init(&data, m->top.snap, m->top.deadline_ns);
	end = end - at > MAX_DATA ? at + MAX_DATA : end;
	/* The number that disguises cookies lies there, too. */
	while ((word = page_reader_next(&data, &at, end)))
		if (m->layout ? word == m->disguise : try_word(m, word))
			return true;
	return false;
}

/* Find it by the data of files. */
static bool find_by_data(struct mimalloc_map *m)
{
	const struct snapshot *snap = m->top.snap;

	for (size_t i = 0; i < snap->nr_maps; i++) {
		taddr_t end = page_reader_data_end(snap, i);

		if (end && find_in(m, snap->maps[i].start, end))
			return true;
	}
	return false;
}

int mimalloc_map_find(struct mimalloc_map *m, struct snapshot *snap)
{
	memset(m, 0, sizeof(*m));
	page_reader_init(&m->top, snap, snap->deadline_ns);
	page_reader_init(&m->sub, snap, snap->deadline_ns);
	page_reader_init(&m->page, snap, snap->deadline_ns);
	if (snap->word_size != 8 || snap->is_big_endian)
		return -ENOENT;
	if (find_by_data(m))
		return 0;
	return choose_layout(m, true) && find_by_data(m) ? 0 : -ENOENT;
}

u32 mimalloc_map_delayed(const struct mimalloc_map *m)
{
	return m->layout->delayed;
}

taddr_t mimalloc_map_arena_end(struct mimalloc_map *m, taddr_t arena)
{
	u64 size = page_reader_at(&m->page, arena + (m->layout->segment ? m->layout->segment->size * 8 : 8));

	if (m->layout->segment)
		return arena + size;
	/* An arena begins with its own address and size. */
	return arena && page_reader_at(&m->page, arena) == arena && size % SLICE == 0 &&
			       size >> ADDRESS_BITS == 0
		       ? arena + size
		       : arena;
}

const char *mimalloc_map_version(const struct mimalloc_map *m)
{
	return m->layout->version;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds and reads the pages of mimalloc. For user/scan/scan_mimalloc.c and user/census/mimalloc.c. */
#include "user/scan/mimalloc_map.h"

#include <errno.h>

#include "user/scan/mimalloc_layout.h"
#include "user/scan/snapshot.h"

enum {
	SLICE_SHIFT = 16,
	SLICE = MIMALLOC_SLICE,
	TABLE_SHIFT = 29, /* of the addresses that a table is for */
	TABLE_BYTES = 64 << 10,
	MIN_ENTRIES = 1 << 12,
	MAX_ENTRIES = 1 << 20,
	MAX_HEADER = 32,     /* words before the root */
	MAX_DATA = 16 << 20, /* bytes of a file's data that are searched */
	MAX_LOOKS = 1 << 24, /* words of tables */
	MAX_TRIED = 512,     /* pages that choose a layout */
	MAX_TRIES = 8,	     /* places that look like a segment, and may be none */
	MAX_WRONG = 16,	     /* one of so many: a call may be under way */
	HUGE_SLOT = 1 << 30,
	IN_ARENA = 7, /* kind of memory */
	ADDRESS_BITS = 47,
	SEGMENT = 4 << 20,	   /* version 1 */
	SLICED_SEGMENT = 32 << 20, /* version 2 */
	MAX_SLICES = 1 << 27,	   /* one huge block may have more than the segment */
	MAX_SLICE_ENTRIES = SLICED_SEGMENT / SLICE,
	MAX_INFO = 1 << 16,
	MAX_INFO_SLICES = 8,
	IS_USED_BIT = 8, /* of the first word of an entry */
	LAST_KIND = 3,	 /* one block alone */
	LAST_SHARED = 1, /* kind of pages of which a segment has several */
};

typedef int mimalloc_run_fn(void *ctx, const struct mimalloc_map_run *run);

static u64 segment_align(const struct mimalloc_map *m)
{
	return m->layout->segment->has_slices ? SLICED_SEGMENT : SEGMENT;
}

static bool is_known(const struct mimalloc_map *m, u64 key)
{
	for (u32 i = 0; i < m->nr_known; i++)
		if (m->known[i] == key)
			return true;
	return false;
}

static bool find_by_data(struct mimalloc_map *m, u64 secret);

/* Is @disguise the number of this mimalloc? The first segment decides. A few bits are a pointer to near the place. */
static bool is_disguise(struct mimalloc_map *m, u64 disguise)
{
	if (m->disguise || !(disguise >> 32) || is_known(m, disguise))
		return m->disguise && m->disguise == disguise;
	if (disguise != m->secret && (m->nr_tries++ >= MAX_TRIES || !find_by_data(m, disguise)))
		return false;
	m->secret = m->disguise = disguise;
	return true;
}

/* Show the pages of slices [@i, @nr) of the segment at @addr, which has @nr_slices. */
static int each_slice(struct mimalloc_map *m, taddr_t addr, u64 i, u64 nr, u64 nr_slices,
		      mimalloc_run_fn *visit, void *ctx)
{
	const struct mimalloc_segment_layout *l = m->layout->segment;
	int err = 0;

	while (i < nr && !err) {
		struct mimalloc_map_run run = { .start = addr + i * SLICE,
						.books = addr + (l->table + i * l->entry) * 8 };
		u64 word = page_reader_at(&m->page, run.books), slices = (u32)word;
		bool is_wrong = word >> 32 || !slices || slices > nr_slices - i;

		/* Behind a page that is no first one, or has too much, nothing is known. */
		i += is_wrong ? nr_slices - i : slices;
		run.end = addr + i * SLICE;
		/* Free slices have no block. */
		if (is_wrong ||
		    page_reader_at(&m->page, run.books + m->layout->slot * 8) >> m->layout->slot_shift)
			err = visit(ctx, &run);
	}
	return err;
}

/* The books and the pages of the segment of version 2 at @addr. -ENOENT: it is none. */
static int each_in_sliced(struct mimalloc_map *m, taddr_t addr, mimalloc_run_fn *visit, void *ctx)
{
	const struct mimalloc_segment_layout *l = m->layout->segment;
	u64 slices = page_reader_at(&m->top, addr + l->size * 8),
	    entries = page_reader_at(&m->top, addr + l->capacity * 8),
	    info = page_reader_at(&m->top, addr + l->info * 8),
	    cookie = page_reader_at(&m->top, addr + l->cookie * 8);
	struct mimalloc_map_run books = { addr, addr + info * SLICE, 0 };
	int err;

	if ((u32)page_reader_at(&m->top, addr + l->kind * 8) > 1 || !slices || slices > MAX_SLICES || !info ||
	    info > MAX_INFO_SLICES || entries <= info || entries > MAX_SLICE_ENTRIES || entries > slices ||
	    page_reader_at(&m->top, addr + l->shift * 8) > entries || !cookie ||
	    !is_disguise(m, cookie ^ addr))
		return -ENOENT;
	err = visit(ctx, &books);
	return err ? err : each_slice(m, addr, info, entries, slices, visit, ctx);
}

/* The books and the pages of the segment of version 1 at @addr. -ENOENT: it is none. */
static int each_in_segment(struct mimalloc_map *m, taddr_t addr, mimalloc_run_fn *visit, void *ctx)
{
	const struct mimalloc_segment_layout *l = m->layout->segment;
	u64 size = page_reader_at(&m->top, addr + l->size * 8),
	    shift = page_reader_at(&m->top, addr + l->shift * 8),
	    nr = page_reader_at(&m->top, addr + l->capacity * 8),
	    info = page_reader_at(&m->top, addr + l->info * 8),
	    cookie = page_reader_at(&m->top, addr + l->cookie * 8);
	u32 kind = (u32)page_reader_at(&m->top, addr + l->kind * 8);
	struct mimalloc_map_run books = { addr, addr + info, 0 };
	int err;

	if (kind > LAST_KIND || !size || size % READER_PAGE || size >> ADDRESS_BITS || !info ||
	    info > MAX_INFO || !nr || shift < SLICE_SHIFT ||
	    (kind <= LAST_SHARED ? nr << shift != size : nr != 1) || !is_disguise(m, cookie ^ addr))
		return -ENOENT;
	err = visit(ctx, &books);
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
static int each_segment(struct mimalloc_map *m, mimalloc_run_fn *visit, void *ctx)
{
	const struct snapshot *snap = m->top.snap;
	u64 align = segment_align(m);
	int err = 0;

	for (size_t i = 0; i < snap->nr_maps && !err; i++) {
		taddr_t at = snap->maps[i].start, end = snap->maps[i].end;

		while (page_reader_own(snap, snap->maps[i].start) && !err) {
			at = (at + align - 1) / align * align;
			at = at < end ? snapshot_next(m->top.snap, at, end) : end;
			if (at >= end)
				break;
			if (at % align < READER_PAGE)
				err = (m->layout->segment->has_slices ? each_in_sliced : each_in_segment)(
					m, at - at % align, visit, ctx);
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

bool mimalloc_map_page(struct mimalloc_map *m, const struct mimalloc_map_run *run,
		       struct mimalloc_map_page *out)
{
	const struct mimalloc_layout *l = m->layout;
	u64 words[MIMALLOC_MAX_WORDS], slot;
	taddr_t last;

	if (run->books % 8 || run->books >> ADDRESS_BITS)
		return false;
	for (u32 i = 0; i < MIMALLOC_MAX_WORDS; i++)
		words[i] = page_reader_at(&m->page, run->books + i * 8);
	slot = words[l->slot] >> l->slot_shift;
	*out = (struct mimalloc_map_page){
		.first = mimalloc_first(l, words, run->books, run->start, slot),
		.end = run->end,
		.slot = slot,
		.capacity = words[l->counts] >> l->counts_shift & 0xffff,
		.reserved = words[l->counts] >> (l->counts_shift + 16) & 0xffff,
		.used = words[l->used] & 0xffff,
		.lists = { words[l->free], words[l->local], words[l->other] & ~3ULL },
		.heap = l->heap ? words[l->heap] : 0,
		.arena = l->segment				 ? run->books & ~(segment_align(m) - 1)
			 : (u32)words[l->memory + 2] == IN_ARENA ? words[l->memory]
								 : 0,
		.has_aligned = words[l->flags] >> l->aligned_bit & 1,
	};
	if (l->segment && l->segment->has_slices && words[0] != (run->end - run->start) >> SLICE_SHIFT)
		return false;
	/* Larger sizes have no room in 32 bits. */
	if (l->slot_shift && out->reserved == 1 && slot >= HUGE_SLOT)
		out->slot = run->end - out->first;
	if (!out->slot || out->slot % 8 || out->slot >> ADDRESS_BITS || out->first < run->start ||
	    out->first >> ADDRESS_BITS || !out->reserved || out->capacity > out->reserved ||
	    out->used > out->capacity)
		return false;
	last = out->first + out->reserved * out->slot;
	/* The map need not have all of a block that has a page of its own, nor the last slice of a page. */
	if (last > out->end && out->reserved > 1 && (l->segment || last - out->end >= SLICE))
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

	if (!run->books)
		return 0;
	++*(mimalloc_map_page(m, run, &page) ? &m->nr_right : &m->nr_wrong);
	return m->nr_right + m->nr_wrong == MAX_TRIED;
}

/* Choose the layout with most pages, of those with or without segments. False: none fits. */
static bool choose_layout(struct mimalloc_map *m, bool has_segments)
{
	const struct mimalloc_layout *found = NULL;
	u64 disguise = 0;
	size_t best = 0;

	for (size_t k = 0; k < NR_MIMALLOC_LAYOUTS; k++) {
		if (!mimalloc_layouts[k].segment == has_segments)
			continue;
		m->layout = &mimalloc_layouts[k];
		m->nr_right = m->nr_wrong = m->disguise = m->nr_tries = 0;
		if (mimalloc_map_each(m, try_page, m) < 0 || m->nr_right <= best ||
		    m->nr_wrong > m->nr_right / MAX_WRONG)
			continue;
		best = m->nr_right;
		found = m->layout;
		disguise = m->disguise;
	}
	m->layout = found;
	m->disguise = disguise;
	return found;
}

/* Is the map at @root, whose first word leads to @table? */
static bool try_root(struct mimalloc_map *m, taddr_t root, taddr_t table)
{
	u64 nr = (table - root) / 8;

	if (is_known(m, root) || nr < MIN_ENTRIES || nr > MAX_ENTRIES || nr & (nr - 1) ||
	    table != root + nr * 8 || !page_reader_own(m->top.snap, table))
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

static bool find_in(struct mimalloc_map *m, u64 secret, taddr_t at, taddr_t end)
{
	struct page_reader data = { 0 };
	u64 word;

	page_reader_init(&data, m->top.snap, m->top.deadline_ns);
	end = end - at > MAX_DATA ? at + MAX_DATA : end;
	while ((word = page_reader_next(&data, &at, end)))
		if (secret ? word == secret : try_word(m, word))
			return true;
	return false;
}

/* Do the data of a file have @secret, or a pointer to the root of the map, if that is 0? */
static bool find_by_data(struct mimalloc_map *m, u64 secret)
{
	const struct snapshot *snap = m->top.snap;

	for (size_t i = 0; i < snap->nr_maps; i++) {
		taddr_t end = page_reader_data_end(snap, i);

		if (end && find_in(m, secret, snap->maps[i].start, end))
			return true;
	}
	return false;
}

int mimalloc_map_find(struct mimalloc_map *m, struct snapshot *snap, u64 deadline_ns)
{
	page_reader_init(&m->top, snap, deadline_ns);
	page_reader_init(&m->sub, snap, deadline_ns);
	page_reader_init(&m->page, snap, deadline_ns);
	if (snap->word_size != 8 || snap->is_big_endian || m->nr_known == MIMALLOC_MAX_COPIES)
		return -ENOENT;
	if (!find_by_data(m, 0) && !choose_layout(m, true))
		return page_reader_is_late(&m->top) ? -ETIME : -ENOENT;
	m->known[m->nr_known++] = m->layout->segment ? m->disguise : m->root;
	return 0;
}

u32 mimalloc_map_delayed(const struct mimalloc_map *m)
{
	return m->layout->delayed;
}

taddr_t mimalloc_map_arena_end(struct mimalloc_map *m, taddr_t arena)
{
	u64 size = page_reader_at(&m->page, arena + (m->layout->segment ? m->layout->segment->size * 8 : 8));

	if (m->layout->segment)
		return arena + (m->layout->segment->has_slices ? size * SLICE : size);
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

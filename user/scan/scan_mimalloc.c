/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Pages of mimalloc, and spans of rpmalloc, which are cut into slots of one size. For user/scan/scan_regions.c. */
#include <errno.h>
#include <stdlib.h>

#include "user/lib/array.h"
#include "user/lib/cleanup.h"
#include "user/scan/mimalloc_layout.h"
#include "user/scan/mimalloc_map.h"
#include "user/scan/scan_regions.h"
#include "user/scan/scan_state.h"

/*
 * After an attach, bytes that no block has covered may be an older block. But a block that begins at an aligned address
 * leaves the begin of its slot uncovered, where the link of a free list remains, which leads to the next block of the
 * size. Who knows the slots knows that no older block can lie in one that has had a block since.
 *
 * The entry of the first slice of a page says how large its blocks are. It is believed if each known block of the page
 * lies in a slot, and if its lists begin with slots.
 */

enum { ADDRESS_BITS = 47, MAX_PREFIXED = 1024, MAX_TRIPLED = 64, MAX_SINGLE = 512, DESCRIPTION = 64 };
enum { SPAN = 64 << 10, SPAN_HEADER = 128, SPAN_UNIT = 16 };

const struct mimalloc_layout mimalloc_layouts[NR_MIMALLOC_LAYOUTS] = {
	{ "2.0.6", 39, 40, 41, 42, 43, 45, 46, 10, false, 128, 2840, 3, { 2, 4, 5 }, 6 },
	{ "2.0.7", 26, 27, 28, 29, 30, 31, 33, 10, false, 128, 2840, 3, { 2, 4, 5 }, 6 },
	{ "2.0.9", 26, 27, 28, 29, 30, 31, 33, 10, false, 384, 2840, 3, { 2, 4, 5 }, 6 },
	{ "2.1.0 to 2.1.2", 26, 27, 28, 29, 30, 31, 33, 10, false, 0, 2840, 3, { 2, 4, 5 }, 6 },
	{ "2.1.4 to 2.1.7", 26, 27, 28, 29, 30, 31, 33, 12, true, 0, 8, 4, { 2, 3, 7 }, 8 },
	{ "2.1.9 to 2.4", 27, 28, 31, 32, 33, 34, 36, 12, true, 0, 8, 4, { 2, 3, 7 }, 8 },
};

u64 mimalloc_slot(const struct mimalloc_layout *l, const u64 *words)
{
	return l->has_start ? words[5] : words[3] >> 32;
}

taddr_t mimalloc_first(const struct mimalloc_layout *l, const u64 *words, taddr_t start)
{
	u64 slot = mimalloc_slot(l, words);

	if (l->has_start)
		return words[6];
	if (l->prefix)
		return start + (slot >= 8 && slot <= MAX_PREFIXED ? l->prefix : 0);
	return start + (slot <= MAX_TRIPLED ? 3 * slot : slot <= MAX_SINGLE ? slot : 0);
}

static bool is_segment(struct page_reader *r, const struct mimalloc_layout *l, taddr_t at)
{
	u64 slices = page_reader_at(r, at + l->slices * 8), info = page_reader_at(r, at + l->info * 8),
	    entries = page_reader_at(r, at + l->entries * 8);

	/* Cookies are the address of the segment, disguised by a random number. */
	return (page_reader_at(r, at + l->cookie * 8) ^ at) >> 32 && info && info <= MIMALLOC_MAX_INFO &&
	       entries > info && entries <= MIMALLOC_NR_SLICES && entries <= slices &&
	       (u32)page_reader_at(r, at + l->kind * 8) <= 1 &&
	       page_reader_at(r, at + l->used * 8) <= entries;
}

/* The page of the block at @addr in the segment at @segment. */
static bool scan_mimalloc_read_page(struct page_reader *r, const struct mimalloc_layout *l, taddr_t segment,
				    taddr_t addr, struct slot_page *out)
{
	taddr_t entry = segment + (l->table + (addr - segment) / MIMALLOC_SLICE * l->entry) * 8;
	u64 words[MIMALLOC_MAX_ENTRY], nr;

	/* Entries of other slices say how many bytes before them the first one of their page is. */
	entry -= page_reader_at(r, entry) >> 32;
	if (entry < segment + l->table * 8 || (entry - segment - l->table * 8) % (l->entry * 8))
		return false;
	for (u32 i = 0; i < l->entry; i++)
		words[i] = page_reader_at(r, entry + i * 8);
	nr = words[1] >> MIMALLOC_CAPACITY_SHIFT & 0xffff;
	out->start = segment + (entry - segment - l->table * 8) / (l->entry * 8) * MIMALLOC_SLICE;
	out->slot = mimalloc_slot(l, words);
	out->first = mimalloc_first(l, words, out->start);
	if (words[0] >> 32 || !words[0] || words[0] > MIMALLOC_NR_SLICES || !out->slot || out->slot % 8 ||
	    out->slot > MIMALLOC_SEGMENT || out->first < out->start ||
	    out->first - out->start >= MIMALLOC_SLICE)
		return false;
	out->end = out->first + nr * out->slot;
	if (out->end > out->start + words[0] * MIMALLOC_SLICE || addr < out->first || addr >= out->end)
		return false;
	for (u32 i = 0; i < 3; i++)
		if ((words[l->lists[i]] & ~3ULL) && ((words[l->lists[i]] & ~3ULL) - out->first) % out->slot)
			return false;
	return true;
}

/* Does each known block of the page lie in a slot? */
static bool scan_mimalloc_agrees(const struct scan *s, const struct slot_page *page)
{
	for (u32 i = scan_lower_bound(s, page->start); i < s->nr && s->blocks[i].addr < page->end; i++) {
		taddr_t addr = s->blocks[i].addr;

		if (addr < page->first ||
		    (addr - page->first) % page->slot + scan_block_size(s, i) > page->slot)
			return false;
	}
	return true;
}

static int add_page(struct region_list *list, const struct slot_page *page)
{
	int err = array_reserve(list->pages, list->max_pages, list->nr_pages + 1);

	if (!err)
		list->pages[list->nr_pages++] = *page;
	return err;
}

/*
 * The page of the block at @addr, by each layout whose bit is in @layouts. Where two of them see different slots, none
 * of them is believed.
 */
static bool find_page(const struct scan *s, struct page_reader *r, u32 layouts, taddr_t addr,
		      struct slot_page *out)
{
	taddr_t segment = addr & ~((taddr_t)MIMALLOC_SEGMENT - 1);
	bool is_found = false;

	for (u32 k = 0; k < NR_MIMALLOC_LAYOUTS; k++) {
		struct slot_page page;

		if (!(layouts >> k & 1) ||
		    !scan_mimalloc_read_page(r, &mimalloc_layouts[k], segment, addr, &page) ||
		    !scan_mimalloc_agrees(s, &page))
			continue;
		if (is_found && (page.slot != out->slot || page.end != out->end || page.first != out->first))
			return false;
		*out = page;
		is_found = true;
	}
	return is_found;
}

/* Books of the allocator at [@start, @end), where no block can lie. */
static int add_dead(struct region_list *list, const struct scan *s, taddr_t start, taddr_t end)
{
	u32 first = scan_lower_bound(s, start);

	return first < s->nr && s->blocks[first].addr < end ? 0 : region_add_dead(list, start, end);
}

struct mapped {
	struct region_list *list;
	const struct scan *s;
	struct mimalloc_map map;
};

/* Add the page of @run, if a known block lies in it. Its description has the address of the first one: no root. */
static int add_mapped(void *ctx, const struct mimalloc_map_run *run)
{
	struct mapped *m = ctx;
	struct mimalloc_map_page p;
	struct slot_page page;
	u32 first;

	int err;

	if (!mimalloc_map_page(&m->map, run, &p))
		return 0;
	page = (struct slot_page){ run->start, p.first, p.first + p.capacity * p.slot, p.slot };
	first = scan_lower_bound(m->s, page.first);
	if (first == m->s->nr || m->s->blocks[first].addr >= page.end || !scan_mimalloc_agrees(m->s, &page))
		return 0;
	err = add_dead(m->list, m->s, run->books, run->books + DESCRIPTION);
	return err || p.reserved == 1 ? err : add_page(m->list, &page);
}

/* Version 3. 0 or -ENOMEM. */
static int find_mapped(struct region_list *list, const struct scan *s)
{
	auto_free struct mapped *m = calloc(1, sizeof(*m));

	if (!m)
		return -ENOMEM;
	m->list = list;
	m->s = s;
	return mimalloc_map_find(&m->map, s->snap) ? 0 : mimalloc_map_each(&m->map, add_mapped, m);
}

/* The books at the beginning of a segment have the addresses of first blocks, too. The shortest that may be counts. */
static int add_books(struct region_list *list, const struct scan *s, struct page_reader *r, u32 layouts,
		     taddr_t segment)
{
	u64 nr = MIMALLOC_MAX_INFO;

	for (u32 k = 0; k < NR_MIMALLOC_LAYOUTS; k++) {
		u32 info = layouts >> k & 1 ? (u32)page_reader_at(r, segment + mimalloc_layouts[k].info * 8)
					    : MIMALLOC_MAX_INFO;

		nr = info < nr ? info : nr;
	}
	return add_dead(list, s, segment, segment + nr * MIMALLOC_SLICE);
}

/* The span of rpmalloc that the block at @addr lies in. Its header says how large its blocks are, and how many. */
static bool read_span(struct page_reader *r, taddr_t addr, struct slot_page *out)
{
	taddr_t start = addr & ~((taddr_t)SPAN - 1);
	u32 nr = (u32)page_reader_at(r, start + 8), slot = (u32)(page_reader_at(r, start + 32) >> 32);
	u64 counters = page_reader_at(r, start + 16), heap = page_reader_at(r, start + 64);

	if (!slot || slot % SPAN_UNIT || nr != (SPAN - SPAN_HEADER) / slot || (u32)counters > nr ||
	    counters >> 32 > nr || page_reader_at(r, start + 40) >> 32 != 1 || !heap || heap % SPAN_UNIT)
		return false;
	*out = (struct slot_page){ start, start + SPAN_HEADER, start + SPAN_HEADER + (u64)nr * slot, slot };
	return addr >= out->first && addr < out->end;
}

static int find_spans(struct region_list *list, const struct scan *s, struct page_reader *r)
{
	int err = 0;

	for (u32 i = 0; i < s->nr && s->blocks[i].addr >> ADDRESS_BITS == 0 && !err;) {
		taddr_t addr = s->blocks[i].addr;
		struct slot_page span;

		if (read_span(r, addr, &span) && scan_mimalloc_agrees(s, &span)) {
			err = add_page(list, &span);
			if (!err)
				err = add_dead(list, s, span.start, span.first);
		}
		i = scan_lower_bound(s, (addr & ~((taddr_t)SPAN - 1)) + SPAN);
	}
	return err;
}

int region_find_mimalloc(struct region_list *list, const struct scan *s)
{
	struct page_reader r = { .snap = s->snap, .addr = 1 };
	taddr_t segment = 1, books = 1; /* that was added last */
	u32 layouts = 0;
	int err = 0;

	if (!s->freed || s->word_size != 8 || s->snap->is_big_endian)
		return 0;
	for (u32 i = 0; i < s->nr && s->blocks[i].addr >> ADDRESS_BITS == 0 && !err;) {
		taddr_t addr = s->blocks[i].addr, end = addr - addr % MIMALLOC_SLICE + MIMALLOC_SLICE;
		struct slot_page page;

		if (segment != (addr & ~((taddr_t)MIMALLOC_SEGMENT - 1))) {
			segment = addr & ~((taddr_t)MIMALLOC_SEGMENT - 1);
			layouts = 0;
			for (u32 k = 0; k < NR_MIMALLOC_LAYOUTS; k++)
				layouts |= (u32)is_segment(&r, &mimalloc_layouts[k], segment) << k;
		}
		if (find_page(s, &r, layouts, addr, &page)) {
			err = add_page(list, &page);
			end = page.end;
			if (!err && books != segment)
				err = add_books(list, s, &r, layouts, segment);
			books = segment;
		}
		i = scan_lower_bound(s, layouts ? end : segment + MIMALLOC_SEGMENT);
	}
	if (!err && !list->nr_pages)
		err = find_mapped(list, s);
	return err || list->nr_pages ? err : find_spans(list, s, &r);
}

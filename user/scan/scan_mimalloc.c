/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Pages of mimalloc, and spans of rpmalloc, which are cut into slots of one size. For user/scan/scan_regions.c. */
#include <errno.h>
#include <stdlib.h>

#include "user/lib/array.h"
#include "user/lib/cleanup.h"
#include "user/scan/mimalloc_map.h"
#include "user/scan/scan_regions.h"
#include "user/scan/scan_state.h"

/*
 * After an attach, bytes that no block has covered may be an older block. But a block that begins at an aligned address
 * leaves the begin of its slot uncovered, where the link of a free list remains, which leads to the next block of the
 * size. Who knows the slots knows that no older block can lie in one that has had a block since.
 *
 * What describes a page says how large its blocks are. It is believed if each known block of the page lies in a slot,
 * and if its lists begin with slots.
 */

enum { ADDRESS_BITS = 47, DESCRIPTION = 64 };
enum { SPAN = 64 << 10, SPAN_HEADER = 128, SPAN_UNIT = 16 };

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
	taddr_t own_end; /* of the books of the last segment */
};

/* Add the page of @run, if a known block lies in it. Its books have the address of the first one: no root. */
static int add_mapped(void *ctx, const struct mimalloc_map_run *run)
{
	struct mapped *m = ctx;
	struct mimalloc_map_page p;
	struct slot_page page;
	u32 first;
	int err;

	if (!run->books) {
		m->own_end = run->end;
		return add_dead(m->list, m->s, run->start, run->end);
	}
	if (!mimalloc_map_page(&m->map, run, &p))
		return 0;
	page = (struct slot_page){ run->start, p.first, p.first + p.capacity * p.slot, p.slot };
	first = scan_lower_bound(m->s, page.first);
	if (first == m->s->nr || m->s->blocks[first].addr >= page.end || !scan_mimalloc_agrees(m->s, &page))
		return 0;
	err = run->books < m->own_end ? 0 : add_dead(m->list, m->s, run->books, run->books + DESCRIPTION);
	return err || p.reserved == 1 ? err : add_page(m->list, &page);
}

static int scan_mimalloc_by_start(const void *a, const void *b)
{
	const struct slot_page *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
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
	struct page_reader r = { 0 };
	auto_free struct mapped *m = NULL;
	int err = 0;

	if (!s->freed || s->word_size != 8 || s->snap->is_big_endian)
		return 0;
	m = calloc(1, sizeof(*m));
	if (!m)
		return -ENOMEM;
	m->list = list;
	m->s = s;
	while (!err && !mimalloc_map_find(&m->map, s->snap, s->snap->deadline_ns)) {
		m->own_end = 0;
		err = mimalloc_map_each(&m->map, add_mapped, m);
	}
	if (!err && m->map.nr_known > 1 && list->nr_pages)
		qsort(list->pages, list->nr_pages, sizeof(*list->pages), scan_mimalloc_by_start);
	page_reader_init(&r, s->snap, s->snap->deadline_ns);
	return err || list->nr_pages ? err : find_spans(list, s, &r);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Pages of mimalloc 2, which are cut into slots of one size. For user/scan/scan_regions.c. */
#include <errno.h>

#include "user/lib/array.h"
#include "user/scan/scan_regions.h"
#include "user/scan/scan_state.h"

/*
 * After an attach, bytes that no block has covered may be an older block. But a block that begins at an aligned address
 * leaves the begin of its slot uncovered, where the link of a free list remains, which leads to the next block of the
 * size. Who knows the slots knows that no older block can lie in one that has had a block since.
 *
 * A segment of 32 MiB begins with its books: an entry for each slice of 64 KiB. The entry of the first slice of a page
 * says how large its blocks are. It is believed if each known block of the page lies in a slot.
 */

enum {
	SLICE = 64 << 10,
	NR_SLICES = 512,
	MAX_INFO = 8, /* slices that the books take */
	PREFIX = 384, /* of a page with blocks of 8 to 1024 bytes, where the entry does not say it */
	MAX_PREFIXED = 1024,
	MAX_ENTRY = 12, /* words */
	ADDRESS_BITS = 47,
};
#define SEGMENT ((taddr_t)NR_SLICES * SLICE)

/* Places in words. */
static const struct mimalloc_layout {
	u8 used, cookie, slices, info, kind, entries, table, entry;
	bool has_start; /* an entry has a word with the size of its blocks, and one with the first of them */
} layouts[] = {
	{ 26, 27, 28, 29, 30, 31, 33, 10, false }, /* 2.0.6 to 2.1.2 */
	{ 26, 27, 28, 29, 30, 31, 33, 12, true },  /* 2.1.4 to 2.1.9 */
	{ 27, 28, 31, 32, 33, 34, 36, 12, true },  /* 2.2 */
};

static bool is_segment(struct page_reader *r, const struct mimalloc_layout *l, taddr_t at)
{
	u64 slices = page_reader_at(r, at + l->slices * 8), info = page_reader_at(r, at + l->info * 8),
	    entries = page_reader_at(r, at + l->entries * 8);

	/* Cookies are the address of the segment, disguised by a random number. */
	return (page_reader_at(r, at + l->cookie * 8) ^ at) >> 32 && info && info <= MAX_INFO &&
	       entries > info && entries <= NR_SLICES && entries <= slices &&
	       (u32)page_reader_at(r, at + l->kind * 8) <= 1 &&
	       page_reader_at(r, at + l->used * 8) <= entries;
}

/* The page of the block at @addr in the segment at @segment. */
static bool scan_mimalloc_read_page(struct page_reader *r, const struct mimalloc_layout *l, taddr_t segment,
				    taddr_t addr, struct slot_page *out)
{
	taddr_t entry = segment + (l->table + (addr - segment) / SLICE * l->entry) * 8;
	u64 words[MAX_ENTRY], nr;

	/* Entries of other slices say how many bytes before them the first one of their page is. */
	entry -= page_reader_at(r, entry) >> 32;
	if (entry < segment + l->table * 8 || (entry - segment - l->table * 8) % (l->entry * 8))
		return false;
	for (u32 i = 0; i < l->entry; i++)
		words[i] = page_reader_at(r, entry + i * 8);
	nr = words[1] >> 16 & 0xffff;
	out->start = segment + (entry - segment - l->table * 8) / (l->entry * 8) * SLICE;
	out->slot = l->has_start ? words[5] : words[3] >> 32;
	out->first = l->has_start ? words[6] : out->start + (out->slot <= MAX_PREFIXED ? PREFIX : 0);
	if (words[0] >> 32 || !words[0] || words[0] > NR_SLICES || !out->slot || out->slot % 8 ||
	    out->slot > SEGMENT || out->first < out->start || out->first - out->start >= SLICE)
		return false;
	out->end = out->first + nr * out->slot;
	return out->end <= out->start + words[0] * SLICE && addr >= out->first && addr < out->end;
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

/* The pages of the blocks of one segment, from block @i on. *@next is the first block behind. */
static int add_segment(struct region_list *list, const struct scan *s, struct page_reader *r, u32 i,
		       u32 *next)
{
	taddr_t segment = s->blocks[i].addr & ~(SEGMENT - 1);
	const struct mimalloc_layout *l = layouts;
	struct slot_page page;
	int err = 0;

	*next = scan_lower_bound(s, segment + SEGMENT);
	/* Two versions have one header: the entries of only one of them are right. */
	while (l < layouts + ARRAY_SIZE(layouts) &&
	       (!is_segment(r, l, segment) ||
		!scan_mimalloc_read_page(r, l, segment, s->blocks[i].addr, &page) ||
		!scan_mimalloc_agrees(s, &page)))
		l++;
	while (l < layouts + ARRAY_SIZE(layouts) && i < *next && !err) {
		taddr_t addr = s->blocks[i].addr, end = addr - addr % SLICE + SLICE;

		if (scan_mimalloc_read_page(r, l, segment, addr, &page) && scan_mimalloc_agrees(s, &page)) {
			err = add_page(list, &page);
			end = page.end;
		}
		i = scan_lower_bound(s, end);
	}
	return err;
}

int region_find_mimalloc(struct region_list *list, const struct scan *s)
{
	struct page_reader r = { .snap = s->snap, .addr = 1 };
	int err = 0;

	if (!s->freed || s->word_size != 8 || s->snap->is_big_endian)
		return 0;
	for (u32 i = 0; i < s->nr && s->blocks[i].addr >> ADDRESS_BITS == 0 && !err;)
		err = add_segment(list, s, &r, i, &i);
	return err;
}

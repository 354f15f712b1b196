/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds the tree of jemalloc in the data of a file, by what must be true of it. */
#include <errno.h>
#include <string.h>

#include "user/census/jemalloc.h"
#include "user/lib/array.h"

/*
 * The root has 2 MiB, or 256 KiB if it is wide, so only a file with so much data can have it. A word there leads to a
 * leaf, and a word of the leaf to a description. This has the address of its extent, which says which place in the root
 * the leaf has: so the start of the root is known. Then all descriptions of one page of the leaf must be right.
 */

enum {
	WIDE_CLASS_SHIFT = 5,
	MAX_DATA = 64 << 20, /* bytes of a file's data that are searched */
	PAGE = JEMALLOC_PAGE,
	PAGE_WORDS = PAGE / 8,
	MIN_RIGHT = 2, /* descriptions that prove a layout */
	MAX_TRIES = 8, /* words of a leaf */
	MAX_LOOKS = 1 << 16,
	NEIGHBOURS = 32,
	ARENA_MASK = (1 << 12) - 1,
	SLAB_SHIFT = 12,
	CLASS_MASK = 255,
	FREE_MASK = 1023,
	FIRST_REGULAR = 5, /* size class; four to a doubling from here on */
	NO_CLASS = 230,
};

static const struct jemalloc_layout layouts[] = {
	{ "5.3", 17, 3, 20, 28, true },
	{ "5.1 or 5.2", 16, 2, 18, 26, false },
	{ "5.0", 15, 2, 17, 25, false },
};

u64 jemalloc_class_bytes(u32 class)
{
	u64 base;

	if (class < FIRST_REGULAR)
		return class ? 16ULL * class : 8;
	class -= FIRST_REGULAR;
	base = class / 4 < 56 ? 64ULL << class / 4 : 0;
	return base + base / 4 * (class % 4 + 1);
}

u64 jemalloc_block_bytes(const struct jemalloc_extent *e)
{
	u64 bytes = jemalloc_class_bytes(e->class);

	/* Since 5.3.1 a large block has whole pages, and the class is the next larger one. One page is padding. */
	if (!e->is_slab && e->class > JEMALLOC_NR_SMALL && bytes > e->size - PAGE &&
	    (bytes != e->size || e->addr % PAGE) && jemalloc_class_bytes(e->class - 1) < e->size)
		return e->size - PAGE;
	return bytes;
}

bool jemalloc_read_extent(const struct jemalloc_books *j, u64 word, taddr_t page, struct jemalloc_extent *out)
{
	const struct jemalloc_layout *l = j->layout;
	taddr_t books = word & JEMALLOC_EXTENT_MASK;
	u64 words[3];
	bool is_last;

	if (!books || !census_words(j->w, books, words, 3))
		return false;
	*out = (struct jemalloc_extent){ .books = books,
					 .addr = words[1],
					 .size = words[2] & ~(u64)(PAGE - 1),
					 .state = words[0] >> l->state & ((1U << l->state_bits) - 1),
					 .class = words[0] >> l->class & CLASS_MASK,
					 .arena = words[0] & ARENA_MASK,
					 .nr_free = words[0] >> l->free & FREE_MASK,
					 .is_slab = words[0] >> SLAB_SHIFT & 1 };
	if (!out->size || out->size >> 47 || out->addr >> 47 || page < (out->addr & ~(taddr_t)(PAGE - 1)) ||
	    page - (out->addr & ~(taddr_t)(PAGE - 1)) >= out->size)
		return false;
	/* While a thread gives free pages back to the kernel, their extents are active, and have no class. */
	if (out->state == JEMALLOC_ACTIVE && out->class >= NO_CLASS)
		out->state = JEMALLOC_DIRTY;
	/* An extent without blocks has no class. The word of its last page may have an old one. */
	if (out->state != JEMALLOC_ACTIVE)
		return out->class >= NO_CLASS;
	is_last = !out->is_slab && page - (out->addr & ~(taddr_t)(PAGE - 1)) >= PAGE;
	if ((out->class != word >> 48 && !is_last) || out->is_slab != (word & JEMALLOC_IS_SLAB))
		return false;
	return jemalloc_block_bytes(out) <= out->size && (!out->is_slab || out->class < JEMALLOC_NR_SMALL);
}

size_t jemalloc_read_words(const struct jemalloc_books *j, taddr_t at, u64 *words)
{
	size_t len = PAGE - at % PAGE;

	census_copy_data(j->w, at, (u8 *)words, len);
	return len / 8;
}

u64 jemalloc_level_words(const struct jemalloc_books *j)
{
	return j->is_wide ? JEMALLOC_WIDE_WORDS : JEMALLOC_LEVEL_WORDS;
}

/* Bytes of a leaf for a page. */
static u64 page_bytes(const struct jemalloc_books *j)
{
	return j->is_wide ? 16 : 8;
}

size_t jemalloc_read_leaf(const struct jemalloc_books *j, taddr_t at, u64 *words, taddr_t *next)
{
	size_t nr = jemalloc_read_words(j, at, words);

	*next = at + nr * 8;
	if (!j->is_wide)
		return nr;
	nr /= 2;
	for (size_t i = 0; i < nr; i++) {
		u64 flags = words[2 * i + 1];

		/* Before 5.3: the class, and from bit 32 on whether it is a slab. */
		words[i] = (words[2 * i] & JEMALLOC_EXTENT_MASK) |
			   (j->layout->has_table ? (flags & ((1 << WIDE_CLASS_SHIFT) - 1)) |
							   flags >> WIDE_CLASS_SHIFT << 48
						 : (flags >> 32 & JEMALLOC_IS_SLAB) | flags << 48);
	}
	return nr;
}

/* How many of @nr words of a leaf are right, the first of which is for the page at @page; -1: one of them is wrong. */
static int count_right(const struct jemalloc_books *j, const u64 *words, size_t nr, taddr_t page)
{
	int nr_right = 0;

	for (size_t i = 0; i < nr; i++) {
		struct jemalloc_extent e;

		if (!(words[i] & JEMALLOC_EXTENT_MASK))
			continue;
		if (!jemalloc_read_extent(j, words[i], page + i * PAGE, &e))
			return -1;
		nr_right++;
	}
	return nr_right;
}

/* The page that word @i of a leaf is for, if it is the first or the last one of its extent; 0 = it is neither. */
static taddr_t boundary_page(const struct jemalloc_books *j, u64 word, u64 i)
{
	u64 extent[3], last;

	if (!(word & JEMALLOC_EXTENT_MASK) || !census_words(j->w, word & JEMALLOC_EXTENT_MASK, extent, 3))
		return 0;
	extent[1] &= ~(u64)(PAGE - 1);
	extent[2] &= ~(u64)(PAGE - 1);
	last = extent[1] + extent[2] - PAGE;
	/* User memory has 47 bits of addresses. */
	if (extent[1] >> 47 || !extent[2] || extent[2] >> 47)
		return 0;
	if ((extent[1] >> JEMALLOC_PAGE_SHIFT) % jemalloc_level_words(j) == i)
		return extent[1];
	/* A large extent may have its last page alone in a page of the leaf. */
	return (last >> JEMALLOC_PAGE_SHIFT) % jemalloc_level_words(j) == i ? last : 0;
}

/*
 * Try the words at @at of a leaf, which lies at @slot, with each layout. -ENODATA: the next ones decide, because none
 * of these has a description, or because too few are right: the lowest extent may be the only one in 2 MiB. Where a
 * slab goes on from the page before, some words are for a page in the middle.
 */
static int try_words(struct jemalloc_books *j, taddr_t slot, taddr_t leaf, taddr_t at)
{
	u64 words[PAGE_WORDS], before = (at - leaf) / page_bytes(j);
	taddr_t page = 0, next;
	size_t nr, i = 0;
	u32 nr_tries = 0;
	int err = -ENOENT;

	j->layout = layouts;
	nr = jemalloc_read_leaf(j, at, words, &next);
	for (; i < nr && nr_tries < MAX_TRIES; i++) {
		/* Where extents were joined, a word has a size class but no description. */
		if (!(words[i] & JEMALLOC_EXTENT_MASK))
			continue;
		nr_tries++;
		page = boundary_page(j, words[i], before + i);
		if (page)
			break;
	}
	if (!page)
		return nr_tries ? -ENOENT : -ENODATA;
	j->root = slot - (page >> (j->is_wide ? JEMALLOC_WIDE_ROOT_SHIFT : JEMALLOC_LEAF_SHIFT)) * 8;
	for (size_t k = 0; k < ARRAY_SIZE(layouts); k++) {
		int nr_right;

		j->layout = &layouts[k];
		if (j->is_wide)
			jemalloc_read_leaf(j, at, words, &next);
		nr_right = count_right(j, words, nr, page - i * PAGE);
		if (nr_right >= MIN_RIGHT)
			return 0;
		err = nr_right > 0 ? -ENODATA : err;
	}
	return err;
}

static bool has_room(const struct jemalloc_books *j, taddr_t addr, u64 bytes)
{
	const struct snapshot_map *map = addr % 64 ? NULL : snapshot_map_find(j->w->snap, addr);

	return map && census_is_anonymous(map) && map->end - addr >= bytes;
}

bool jemalloc_may_be_node(const struct jemalloc_books *j, taddr_t addr)
{
	return has_room(j, addr, jemalloc_level_words(j) * 8);
}

bool jemalloc_may_be_leaf(const struct jemalloc_books *j, taddr_t addr)
{
	return has_room(j, addr, jemalloc_level_words(j) * page_bytes(j));
}

/* Is @leaf, which lies at @slot, a leaf? The first words in it decide. */
static bool try_leaf(struct jemalloc_books *j, taddr_t slot, taddr_t leaf)
{
	int err = jemalloc_may_be_leaf(j, leaf) ? -ENODATA : -ENOENT;

	for (taddr_t at = leaf; at < leaf + jemalloc_level_words(j) * page_bytes(j) && err == -ENODATA &&
				j->nr_looks < MAX_LOOKS;
	     at = (at / PAGE + 1) * PAGE, j->nr_looks++)
		err = try_words(j, slot, leaf, at);
	return !err;
}

/* Does the word at @slot lead to a leaf, or to what leads to one? */
static bool leads_to_leaf(struct jemalloc_books *j, taddr_t slot, u64 word)
{
	if (!j->is_wide)
		return try_leaf(j, slot, word);
	if (!jemalloc_may_be_node(j, word))
		return false;
	for (taddr_t at = word; at < word + JEMALLOC_WIDE_WORDS * 8;) {
		u64 words[PAGE_WORDS];
		size_t nr = jemalloc_read_words(j, at, words);

		for (size_t i = 0; i < nr; i++)
			if (words[i])
				return try_leaf(j, slot, words[i]);
		at += nr * 8;
	}
	return false;
}

/*
 * Is word @i of a root too close to another one? Leaves and nodes do not overlap. To look behind each word of a table
 * of pointers to blocks would take minutes.
 */
static bool jemalloc_overlaps(const struct jemalloc_books *j, const u64 *words, size_t nr, size_t i)
{
	u64 bytes = j->is_wide ? JEMALLOC_WIDE_WORDS * 8 : jemalloc_level_words(j) * page_bytes(j);
	size_t end = i + NEIGHBOURS < nr ? i + NEIGHBOURS : nr;

	for (size_t k = i > NEIGHBOURS ? i - NEIGHBOURS : 0; k < end; k++)
		if (k != i && words[k] && words[k] % 64 == 0 &&
		    (words[k] > words[i] ? words[k] - words[i] : words[i] - words[k]) < bytes)
			return true;
	return false;
}

/* Search the data [@start, @end). */
static int jemalloc_find_search(struct jemalloc_books *j, taddr_t start, taddr_t end)
{
	for (taddr_t page = start; page < end; page = (page / PAGE + 1) * PAGE) {
		u64 words[PAGE_WORDS];
		size_t nr = jemalloc_read_words(j, page, words);

		for (size_t i = 0; i < nr; i++)
			if (words[i] && words[i] % 64 == 0 && !jemalloc_overlaps(j, words, nr, i) &&
			    leads_to_leaf(j, page + i * 8, words[i]) && j->root >= start &&
			    j->root + jemalloc_level_words(j) * 8 <= end)
				return 0;
		if (census_check_time(j->w))
			return -ETIME;
	}
	return -ENOENT;
}

/* Search the data [@start, @end) for the root behind *@nr_before others, which are counted down. */
static int find_after(struct jemalloc_books *j, taddr_t start, taddr_t end, u32 *nr_before)
{
	u64 bytes = jemalloc_level_words(j) * 8;

	while (end - start >= bytes) {
		int err = jemalloc_find_search(j, start, end);

		if (err || !*nr_before)
			return err;
		--*nr_before;
		start = j->root + bytes;
	}
	return -ENOENT;
}

int jemalloc_find(struct jemalloc_books *j)
{
	const struct snapshot *snap = j->w->snap;
	u32 nr_before = j->w->nth;
	int err = -ENOENT;

	if (snap->word_size != 8 || snap->is_big_endian || j->w->page != PAGE)
		return -ENOENT;
	for (size_t i = 0; i < 2 * snap->nr_maps && err == -ENOENT; i++) {
		taddr_t start = snap->maps[i % snap->nr_maps].start;
		taddr_t end = census_bss_end(snap, i % snap->nr_maps);

		j->is_wide = i >= snap->nr_maps;
		j->nr_looks = 0;
		if (end && end - start <= MAX_DATA)
			err = find_after(j, start, end, &nr_before);
	}
	return err;
}

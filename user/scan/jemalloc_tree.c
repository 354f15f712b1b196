/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds and reads the tree of jemalloc. For user/scan/scan_jemalloc.c and user/census/jemalloc.c. */
#include "user/scan/jemalloc_tree.h"

#include <errno.h>

#include "user/scan/snapshot.h"

/*
 * The root has 2 MiB, or 256 KiB if it is wide, so only a file with so much data can have it. A word there leads to a
 * leaf, and a word of the leaf to a description. This has the address of its extent, which says which place in the root
 * the leaf has: so the start of the root is known. It is believed if nearly all descriptions of one page of the leaf
 * are right, and if all of the root is there and has only what may be leaves. Without the second condition, one start
 * of gdb in 30 showed a tree in libpython's data.
 */

enum {
	LEVEL_WORDS = 1 << 18, /* of 48 bits of an address, 12 are in a page */
	WIDE_WORDS = 1 << 15,  /* of 57 bits, in three levels */
	PAGE = JEMALLOC_PAGE,
	PAGE_SHIFT = 12,
	LEAF_SHIFT = 30,
	WIDE_LEAF_SHIFT = 27,
	WIDE_ROOT_SHIFT = 42,
	WIDE_CLASS_SHIFT = 5, /* of the second word of a page, in 5.3 */
	ADDRESS_BITS = 47,    /* of user memory */
	MAX_DATA = 64 << 20,  /* bytes of a file's data that are searched */
	MIN_RIGHT = 2,	      /* descriptions that prove a layout */
	MAX_WRONG = 16,	      /* one of so many: a call may be under way */
	MAX_TRIES = 8,	      /* words of a leaf */
	NEIGHBOURS = 32,
	ARENA_MASK = (1 << 12) - 1,
	SLAB_SHIFT = 12,
	CLASS_MASK = 255,
	FREE_MASK = 1023,
	FIRST_REGULAR = 5,   /* size class; four to a doubling from here on */
	MAX_ARRAY = 1 << 16, /* bytes of a thread's blocks of one size */
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

static u64 level_words(const struct jemalloc_tree *t)
{
	return t->is_wide ? WIDE_WORDS : LEVEL_WORDS;
}

u32 jemalloc_leaf_shift(const struct jemalloc_tree *t)
{
	return t->is_wide ? WIDE_LEAF_SHIFT : LEAF_SHIFT;
}

static u32 root_shift(const struct jemalloc_tree *t)
{
	return t->is_wide ? WIDE_ROOT_SHIFT : LEAF_SHIFT;
}

/* Bytes of a leaf for a page. */
static u32 page_bytes(const struct jemalloc_tree *t)
{
	return t->is_wide ? 16 : 8;
}

/* Is there room for @bytes of the tree? */
static bool has_room(const struct jemalloc_tree *t, taddr_t addr, u64 bytes)
{
	const struct snapshot_map *map = addr % 64 ? NULL : page_reader_own(t->data.snap, addr);

	return map && map->end - addr >= bytes;
}

static bool may_be_leaf(const struct jemalloc_tree *t, taddr_t addr)
{
	return has_room(t, addr, level_words(t) * page_bytes(t));
}

/* The word for a page at @at of a leaf. */
static u64 word_at(struct jemalloc_tree *t, taddr_t at)
{
	u64 word = page_reader_at(&t->leaves, at), flags;

	if (!t->is_wide || !word)
		return word;
	flags = page_reader_at(&t->leaves, at + 8);
	word &= JEMALLOC_EXTENT_MASK;
	if (t->layout->has_table)
		return word | (flags & ((1 << WIDE_CLASS_SHIFT) - 1)) |
		       flags >> WIDE_CLASS_SHIFT << JEMALLOC_CLASS_SHIFT;
	/* Before 5.3: the class, and from bit 32 on whether it is a slab. */
	return word | (flags >> 32 & JEMALLOC_IS_SLAB) | flags << JEMALLOC_CLASS_SHIFT;
}

taddr_t jemalloc_tree_leaf(struct jemalloc_tree *t, taddr_t addr)
{
	u64 i = addr >> root_shift(t),
	    word = i < level_words(t) ? page_reader_at(&t->data, t->root + i * 8) : 0;

	if (t->is_wide && word)
		word = page_reader_at(&t->nodes, word + (addr >> WIDE_LEAF_SHIFT) % WIDE_WORDS * 8);
	return word && may_be_leaf(t, word) ? word : 0;
}

u64 jemalloc_tree_word(struct jemalloc_tree *t, taddr_t addr)
{
	taddr_t leaf = jemalloc_tree_leaf(t, addr);

	return leaf ? word_at(t, leaf + (addr >> PAGE_SHIFT) % level_words(t) * page_bytes(t)) : 0;
}

bool jemalloc_tree_extent(struct jemalloc_tree *t, u64 word, taddr_t page, struct jemalloc_extent *out)
{
	const struct jemalloc_layout *l = t->layout;
	taddr_t books = word & JEMALLOC_EXTENT_MASK, start;
	u64 fields = books ? page_reader_at(&t->books, books) : 0;
	bool is_last;

	*out = (struct jemalloc_extent){ .books = books,
					 .addr = page_reader_at(&t->books, books + 8),
					 .size = page_reader_at(&t->books, books + 16) & ~(u64)(PAGE - 1),
					 .state = fields >> l->state & ((1U << l->state_bits) - 1),
					 .class = fields >> l->class & CLASS_MASK,
					 .arena = fields & ARENA_MASK,
					 .nr_free = fields >> l->free & FREE_MASK,
					 .is_slab = fields >> SLAB_SHIFT & 1 };
	start = out->addr & ~(taddr_t)(PAGE - 1);
	if (!out->size || out->size >> ADDRESS_BITS || out->addr >> ADDRESS_BITS || page < start ||
	    page - start >= out->size)
		return false;
	/* While a thread gives free pages back to the kernel, their extents are active, and have no class. */
	if (out->state == JEMALLOC_ACTIVE && out->class >= JEMALLOC_NO_CLASS)
		out->state = JEMALLOC_DIRTY;
	/* An extent without blocks has no class. The word of its last page may have an old one. */
	if (out->state != JEMALLOC_ACTIVE)
		return out->class >= JEMALLOC_NO_CLASS;
	is_last = !out->is_slab && page - start >= PAGE;
	if ((out->class != word >> JEMALLOC_CLASS_SHIFT && !is_last) ||
	    out->is_slab != (word & JEMALLOC_IS_SLAB))
		return false;
	return jemalloc_block_bytes(out) <= out->size && (!out->is_slab || out->class < JEMALLOC_NR_SMALL);
}

/* The page that word @i of a leaf is for, if it is the first or the last one of its extent; 0 = it is neither. */
static taddr_t boundary_page(struct jemalloc_tree *t, u64 word, u64 i)
{
	taddr_t books = word & JEMALLOC_EXTENT_MASK,
		first = page_reader_at(&t->books, books + 8) & ~(u64)(PAGE - 1);
	u64 size = page_reader_at(&t->books, books + 16) & ~(u64)(PAGE - 1);
	taddr_t last = first + size - PAGE;

	if (first >> ADDRESS_BITS || !size || size >> ADDRESS_BITS)
		return 0;
	if ((first >> PAGE_SHIFT) % level_words(t) == i)
		return first;
	/* A large extent may have its last page alone in a page of the leaf. */
	return (last >> PAGE_SHIFT) % level_words(t) == i ? last : 0;
}

/*
 * Are the words of @leaf right, from the first one on to the end of its page that decides? Adds to *@nr_right. Where a
 * slab goes on from the page before, some words are for a page in the middle. *@base: the address that the leaf begins
 * with.
 */
static bool is_leaf(struct jemalloc_tree *t, taddr_t leaf, taddr_t *base, u32 *nr_right)
{
	taddr_t at = leaf, end = leaf + level_words(t) * page_bytes(t);
	u32 nr_tries = 0, nr_wrong = 0, nr_looks = t->leaves.nr_looks;
	bool is_known = false;

	while (t->leaves.nr_looks < t->max_looks && page_reader_next(&t->leaves, &at, end)) {
		u64 i = (at - 8 - leaf) / page_bytes(t), word = word_at(t, leaf + i * page_bytes(t));
		struct jemalloc_extent e;
		taddr_t page;

		/* A wide one has two words. */
		at = leaf + (i + 1) * page_bytes(t);
		if (*nr_right >= MIN_RIGHT && t->leaves.nr_looks > nr_looks)
			break;
		nr_looks = t->leaves.nr_looks;
		/* Where extents were joined, a word has a size class but no description. */
		if (!(word & JEMALLOC_EXTENT_MASK))
			continue;
		page = is_known ? *base + (i << PAGE_SHIFT) : boundary_page(t, word, i);
		if (!page && ++nr_tries == MAX_TRIES)
			return false;
		if (!page)
			continue;
		is_known = true;
		*base = page - (i << PAGE_SHIFT);
		++*(jemalloc_tree_extent(t, word, page, &e) ? nr_right : &nr_wrong);
		if (nr_wrong > *nr_right / MAX_WRONG + 1)
			return false;
	}
	return is_known && nr_wrong <= *nr_right / MAX_WRONG;
}

/* Is all of the root there, in [@start, @end), with leaves or what leads to them only? */
static bool is_root(struct jemalloc_tree *t, taddr_t start, taddr_t end)
{
	struct page_reader *r = &t->nodes;
	taddr_t at = t->root, root_end = at + level_words(t) * 8;
	u64 word;

	if (at < start || root_end > end)
		return false;
	while ((word = page_reader_next(r, &at, root_end)))
		if (!has_room(t, word, level_words(t) * 8))
			return false;
	return !page_reader_is_late(r);
}

/* Are the leaves right by t->layout that @word leads to, until so many descriptions are that the layout is proved? */
static bool are_leaves(struct jemalloc_tree *t, u64 word, taddr_t *base)
{
	taddr_t at = word, end = at + level_words(t) * 8, leaf = word;
	u32 nr_right = 0;

	if (!t->is_wide)
		return may_be_leaf(t, leaf) && is_leaf(t, leaf, base, &nr_right) && nr_right >= MIN_RIGHT;
	while (nr_right < MIN_RIGHT && (leaf = page_reader_next(&t->nodes, &at, end)))
		if (!may_be_leaf(t, leaf) || !is_leaf(t, leaf, base, &nr_right))
			return false;
	return nr_right >= MIN_RIGHT;
}

/* Does the word at @slot lead to leaves of a root in [@start, @end)? */
static bool leads_to_leaf(struct jemalloc_tree *t, taddr_t slot, u64 word, taddr_t start, taddr_t end)
{
	taddr_t base;

	for (size_t k = 0; k < ARRAY_SIZE(layouts) && has_room(t, word, level_words(t) * 8); k++) {
		t->layout = &layouts[k];
		if (!are_leaves(t, word, &base))
			continue;
		t->root = slot - (base >> root_shift(t)) * 8;
		return is_root(t, start, end);
	}
	return false;
}

/*
 * Is the word of a root at @slot too close to another one? Leaves and nodes do not overlap. To look behind each word of
 * a table of pointers to blocks would take minutes.
 */
static bool is_too_close(const struct jemalloc_tree *t, taddr_t slot)
{
	u64 bytes = level_words(t) * 8, i = slot % PAGE / 8, word = t->data.words[i];
	u64 end = i + NEIGHBOURS < PAGE / 8 ? i + NEIGHBOURS : PAGE / 8;

	for (u64 k = i > NEIGHBOURS ? i - NEIGHBOURS : 0; k < end; k++) {
		u64 other = t->data.words[k];

		if (k != i && other && other % 64 == 0 &&
		    (other > word ? other - word : word - other) < bytes)
			return true;
	}
	return false;
}

/* Search the data [@start, @end) for the root behind *@nr_before others, which are counted down. */
static int find_in_data(struct jemalloc_tree *t, taddr_t start, taddr_t end, u32 *nr_before)
{
	taddr_t at = start;
	u64 word;

	/*
	 * Where too many words look like those of a root, none is found. A word for user memory is in the lower half
	 * of the root.
	 */
	t->leaves.nr_looks = t->nodes.nr_looks = 0;
	while (t->leaves.nr_looks < t->max_looks && t->nodes.nr_looks < t->max_looks &&
	       end - at >= level_words(t) * 8 / 2 && (word = page_reader_next(&t->data, &at, end))) {
		if (word % 64 || is_too_close(t, at - 8) || !leads_to_leaf(t, at - 8, word, start, end))
			continue;
		if (!*nr_before)
			return 0;
		--*nr_before;
		at = start = t->root + level_words(t) * 8;
	}
	return page_reader_is_late(&t->data) ? -ETIME : -ENOENT;
}

int jemalloc_tree_find(struct jemalloc_tree *t, struct snapshot *snap, u64 deadline_ns, u32 nth)
{
	int err = -ENOENT;

	page_reader_init(&t->data, snap, deadline_ns);
	page_reader_init(&t->nodes, snap, deadline_ns);
	page_reader_init(&t->leaves, snap, deadline_ns);
	page_reader_init(&t->books, snap, deadline_ns);
	if (snap->word_size != 8 || snap->is_big_endian)
		return -ENOENT;
	for (size_t i = 0; i < 2 * snap->nr_maps && err == -ENOENT; i++) {
		taddr_t start = snap->maps[i % snap->nr_maps].start;
		taddr_t end = page_reader_data_end(snap, i % snap->nr_maps);

		t->is_wide = i >= snap->nr_maps;
		if (end && end - start <= MAX_DATA)
			err = find_in_data(t, start, end, &nth);
	}
	return err;
}

/* All words of t->leaf, whose first one is for the page at @base. */
static int each_in_leaf(struct jemalloc_tree *t, taddr_t base, jemalloc_word_fn *visit, void *ctx)
{
	taddr_t at = t->leaf, end = at + level_words(t) * page_bytes(t);
	int err = may_be_leaf(t, at) ? 0 : visit(ctx, base, 0);

	while (!err && may_be_leaf(t, t->leaf) && page_reader_next(&t->leaves, &at, end)) {
		u64 i = (at - 8 - t->leaf) / page_bytes(t), word = word_at(t, t->leaf + i * page_bytes(t));

		if (word & JEMALLOC_EXTENT_MASK)
			err = visit(ctx, base + (i << PAGE_SHIFT), word);
		/* A wide one has two. */
		at = t->leaf + (i + 1) * page_bytes(t);
	}
	return err || !page_reader_is_late(&t->leaves) ? err : -ETIME;
}

/* All leaves that t->node leads to, for the addresses from @base on. */
static int each_in_node(struct jemalloc_tree *t, taddr_t base, jemalloc_word_fn *visit, void *ctx)
{
	taddr_t at = t->node, end = at + level_words(t) * 8;
	int err = 0;

	if (!has_room(t, at, level_words(t) * 8))
		return visit(ctx, base, 0);
	while (!err && (t->leaf = page_reader_next(&t->nodes, &at, end)))
		err = each_in_leaf(t, base + ((at - 8 - t->node) / 8 << WIDE_LEAF_SHIFT), visit, ctx);
	return err;
}

int jemalloc_tree_each(struct jemalloc_tree *t, jemalloc_word_fn *visit, void *ctx)
{
	/* User memory has the lower half of all addresses. */
	taddr_t at = t->root, end = at + level_words(t) * 8 / 2;
	int err = 0;

	while (!err && (t->node = t->leaf = page_reader_next(&t->data, &at, end))) {
		taddr_t base = (at - 8 - t->root) / 8 << root_shift(t);

		err = t->is_wide ? each_in_node(t, base, visit, ctx) : each_in_leaf(t, base, visit, ctx);
	}
	return err;
}

/*
 * 5.3: the address of the next block, a counter, then the lowest 16 bits of three addresses: low mark, first place,
 * end. Blocks lie from the next one to the end.
 */
static bool read_bin_53(const u64 *words, struct jemalloc_bin *out)
{
	u16 low = (u16)words[2], full = (u16)(words[2] >> 16), empty = (u16)(words[2] >> 32),
	    head = (u16)words[0];
	u16 nr_bytes = (u16)(empty - head), size = (u16)(empty - full);

	*out = (struct jemalloc_bin){ words[0] + nr_bytes - size, words[0], words[0] + nr_bytes };
	return words[0] > MAX_ARRAY && (low | full | empty | head) % 8 == 0 && nr_bytes <= size;
}

/*
 * 5.0 to 5.2: the low mark and the number of blocks in 32 bits each, a counter, the address behind the array. The last
 * so many places before this address have blocks. Other fields lie between the entries of small and of large sizes.
 */
static bool read_bin_50(const u64 *words, struct jemalloc_bin *out)
{
	s32 low = (s32)words[0], nr = (s32)(words[0] >> 32);

	*out = (struct jemalloc_bin){ words[2] - 8 * (u64)(u32)nr, words[2] - 8 * (u64)(u32)nr, words[2] };
	return words[2] > MAX_ARRAY && words[2] % 8 == 0 && nr >= 0 && nr <= MAX_ARRAY / 8 && low >= -1 &&
	       low <= nr;
}

bool jemalloc_bin_read(const struct jemalloc_tree *t, const u64 *words, taddr_t last,
		       struct jemalloc_bin *out)
{
	if (!t->layout->has_table)
		return read_bin_50(words, out) && (!last || (out->end > last && out->floor >= last));
	/* Arrays of sizes that are not cached lie before, and are empty. */
	return read_bin_53(words, out) &&
	       (!last || out->floor == last ||
		(out->floor == out->end && out->end < last && last - out->end <= MAX_ARRAY));
}

/* Thread-local data lies next to the thread pointer: below it on x86_64, above it on aarch64. */
size_t jemalloc_thread_words(struct jemalloc_tree *t, taddr_t tp, u64 *words, taddr_t *start)
{
	const struct snapshot_map *map = tp ? snapshot_map_find(t->data.snap, tp) : NULL;
	taddr_t end;

	if (!map)
		return 0;
	*start = tp - map->start > JEMALLOC_TLS_BYTES ? (tp & ~(taddr_t)7) - JEMALLOC_TLS_BYTES : map->start;
	end = map->end - tp > JEMALLOC_TLS_BYTES ? tp + JEMALLOC_TLS_BYTES : map->end;
	for (taddr_t at = *start; at < end; at += 8)
		words[(at - *start) / 8] = page_reader_at(&t->nodes, at);
	return (end - *start) / 8;
}

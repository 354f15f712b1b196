/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Memory that jemalloc 5 has for itself or has free: no roots. For user/scan/scan_regions.c. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "user/lib/array.h"
#include "user/lib/cleanup.h"
#include "user/lib/clock.h"
#include "user/scan/scan_regions.h"
#include "user/scan/scan_state.h"

/*
 * jemalloc keeps a tree of the pages that it manages. The tree has two levels. The root is an array in the data of
 * jemalloc, whose leaves are arrays with a word for each page. Where jemalloc was built on a machine with addresses of
 * 57 bits, the tree is wide: three levels, and two words for each page, the second of which has the flags. This word
 * leads to the description of the extent that the page belongs to, and its low bits say whether small blocks lie there
 * and whether the extent is in use. The tree is believed if it leads from a known block to a description with the
 * address of the block, and if all of the root is there and has only leaves. Without the second condition, one start of
 * gdb in 30 showed a tree in libpython's data.
 *
 * Dead are:
 * - extents that are not in use. The words of their first and last page are the same but for flags;
 * - jemalloc's own memory, where the descriptions lie: they hold the addresses of extents, so of large blocks. It
 *   consists of pieces that begin at multiples of 2 MiB, with a header that says how much of the piece is used;
 * - the arrays of threads with blocks that are free. Words stay there when their blocks are given out. Thread-local
 *   data has a table of these arrays, which lie side by side. Before 5.3 they are an extent of their own;
 * - the leaves that a thread used last, in thread-local data: each with the first address of its 1 GiB, where a block
 *   may lie.
 * Extents of small blocks are memory of the allocator alone if they hold a known block.
 */

enum {
	LEVEL_WORDS = 1 << 18, /* of 48 bits of an address, 12 are in a page */
	WIDE_WORDS = 1 << 15,  /* of 57 bits, in three levels */
	WIDE_LEAF_SHIFT = 27,
	WIDE_ROOT_SHIFT = 42,
	WIDE_CLASS_SHIFT = 5,	 /* of the second word of a page, in 5.3 */
	EXTENT_CLASS_SHIFT = 20, /* of the first word of a description, in 5.3 */
	OLD_CLASS_SHIFT = 18,	 /* in 5.1 and 5.2; one less in 5.0 */
	EXTENT_CLASS_MASK = 255,
	EXTENT_SLAB_SHIFT = 12,
	PAGE_SHIFT = 12,
	ROOT_SHIFT = 30,
	CLASS_SHIFT = 48,
	MAX_CLASSES = 256, /* of sizes: 232 to 236 in jemalloc 5 */
	NO_CLASS = 232,	   /* the first one that no block can have */
	IS_SLAB = 1,
	STATE_SHIFT = 2,
	STATE_MASK = 7,
	MAX_DATA = 8 << 20,  /* bytes of a file's data in which the root is searched */
	MAX_SAMPLES = 16,    /* known blocks with which it is searched */
	MAX_TREES = 4,	     /* of a process that has jemalloc several times */
	UNIT_SHIFT = 21,     /* pieces of its own memory are multiples of 2 MiB */
	MAX_UNITS = 4096,    /* of these 2 MiB */
	MAX_UNITS_BACK = 64, /* to the header of a piece */
	HEADER_WORDS = 5,
	NR_BIN_WORDS = 3, /* of an entry of the table: next free block, counter, four halves of an address */
	LEAF_WORDS = 2,	  /* of a leaf that a thread used: first address, leaf */
	MAX_BIN_BYTES = 1 << 15, /* of the array of one size */
	MIN_BINS = 16,
	MAX_BINS = 256,
	TLS_BYTES = 32 << 10,
	MAX_TRIES = 1 << 20,  /* known blocks that are looked up while the root is searched */
	ROOT_TRIES = 1 << 14, /* to look at all of a root is as much work as so many */
};
#define WORD_BITS   48
#define EXTENT_MASK ((1ULL << WORD_BITS) - 64)

/* Pages that have the same extent, so far. */
struct extent_run {
	taddr_t start, end; /* of the pages with this extent; start 0 = none */
	u64 bits;	    /* of the word of the first page */
};

struct jemalloc {
	const struct scan *s;
	struct region_list *list;
	struct page_reader reader;
	taddr_t samples[MAX_SAMPLES]; /* known blocks */
	size_t nr_samples;
	taddr_t data_start, data_end; /* in which the root is searched */
	taddr_t root;
	bool is_wide, is_old; /* is_old: wide, before 5.3 */
	bool knows_all; /* no block may be alive that the scan does not know, as the new copy of a realloc */
	u64 nr_tries;
	u64 units[MAX_UNITS]; /* of 2 MiB, that have descriptions */
	size_t nr_units;
	struct extent_run run;
	struct dead_range *in_tree; /* owned; by address; memory that the trees so far have */
	size_t nr_in_tree, max_in_tree;
};

/* Would the process be stopped for too long? */
static bool is_late(const struct snapshot *snap)
{
	return snap->deadline_ns && clock_now_ns() > snap->deadline_ns;
}

/* The page at @addr; NULL if it is not in memory, or if it is too late: so each search ends soon. */
static const u64 *page_reader_read(struct page_reader *r, taddr_t addr)
{
	if (r->addr != addr)
		r->is_there = !is_late(r->snap) && snapshot_peek(r->snap, addr, r->words, READER_PAGE) == 0;
	r->addr = addr;
	return r->is_there ? r->words : NULL;
}

u64 page_reader_at(struct page_reader *r, taddr_t addr)
{
	const u64 *words = addr % 8 ? NULL : page_reader_read(r, addr & ~(taddr_t)(READER_PAGE - 1));

	return words ? words[addr % READER_PAGE / 8] : 0;
}

static bool is_own_memory(const struct snapshot *snap, taddr_t addr)
{
	const struct snapshot_map *map = addr ? snapshot_map_find(snap, addr) : NULL;

	return map && !map->ino && map->is_writable && !map->is_shared;
}

/* Is all of [@start, @end) such memory, in one or several mappings? */
static bool is_all_own(const struct snapshot *snap, taddr_t start, taddr_t end)
{
	while (start < end) {
		if (!is_own_memory(snap, start))
			return false;
		start = snapshot_map_find(snap, start)->end;
	}
	return true;
}

static u64 level_words(const struct jemalloc *j)
{
	return j->is_wide ? WIDE_WORDS : LEVEL_WORDS;
}

static u32 leaf_shift(const struct jemalloc *j)
{
	return j->is_wide ? WIDE_LEAF_SHIFT : ROOT_SHIFT;
}

/* Bytes of a leaf for a page. */
static u64 bytes_of_page(const struct jemalloc *j)
{
	return j->is_wide ? 16 : 8;
}

/* Is there room for @bytes of the tree? */
static bool has_room(const struct snapshot *snap, taddr_t addr, u64 bytes)
{
	return addr % 64 == 0 && is_own_memory(snap, addr) &&
	       snapshot_map_find(snap, addr)->end - addr >= bytes;
}

static bool may_be_leaf(const struct jemalloc *j, taddr_t addr)
{
	return has_room(j->s->snap, addr, level_words(j) * bytes_of_page(j));
}

/* The word of a narrow leaf that says the same as the two words @extent and @flags of a wide one. */
static u64 narrow_word(u64 extent, u64 flags)
{
	return (extent & EXTENT_MASK) | (flags & ((1 << WIDE_CLASS_SHIFT) - 1)) |
	       (flags >> WIDE_CLASS_SHIFT) << CLASS_SHIFT;
}

/* The word that the leaf @leaf has for the page at @page. */
static u64 word_of(struct jemalloc *j, taddr_t leaf, taddr_t page)
{
	taddr_t at = leaf + (page >> PAGE_SHIFT) % level_words(j) * bytes_of_page(j);
	u64 word = page_reader_at(&j->reader, at);
	u64 flags = j->is_wide && word ? page_reader_at(&j->reader, at + 8) : 0;

	if (!j->is_wide || !word)
		return word;
	/* Before 5.3 the second word has the class in its lower half, and a byte that says whether it is a slab. */
	return j->is_old ? (word & EXTENT_MASK) | (flags >> 32 & IS_SLAB) | flags << CLASS_SHIFT
			 : narrow_word(word, flags);
}

/* The leaf for @addr, where @first is the word of the root. */
static taddr_t leaf_below(struct jemalloc *j, u64 first, taddr_t addr)
{
	return j->is_wide && first
		       ? page_reader_at(&j->reader, first + (addr >> WIDE_LEAF_SHIFT) % WIDE_WORDS * 8)
		       : first;
}

static u64 root_index(const struct jemalloc *j, taddr_t addr)
{
	return addr >> (j->is_wide ? WIDE_ROOT_SHIFT : ROOT_SHIFT);
}

/* The extent that @leaf has for the page at @page; 0 = none. */
static u64 extent_of(struct jemalloc *j, u64 leaf, taddr_t page)
{
	u32 shift = j->is_old ? OLD_CLASS_SHIFT : EXTENT_CLASS_SHIFT;
	u64 bits = word_of(j, leaf, page), class = bits >> CLASS_SHIFT, first;

	if (class >= MAX_CLASSES)
		return 0;
	first = j->is_wide ? page_reader_at(&j->reader, bits & EXTENT_MASK) : 0;
	if (j->is_wide && (((first >> shift & EXTENT_CLASS_MASK) != class &&
			    (!j->is_old || (first >> (shift - 1) & EXTENT_CLASS_MASK) != class)) ||
			   (first >> EXTENT_SLAB_SHIFT & 1) != (bits & IS_SLAB)))
		return 0;
	return bits & EXTENT_MASK;
}

/*
 * Does @leaf, a word of the root, lead to the extent of the known block at @block? It must also have this extent for
 * the first and the last page, unless these belong to another leaf.
 */
static bool scan_jemalloc_leads_to(struct jemalloc *j, u64 leaf, taddr_t block)
{
	u64 extent = extent_of(j, leaf, block), start, size;
	taddr_t last;

	if (!extent || !is_own_memory(j->s->snap, extent))
		return false;
	start = page_reader_at(&j->reader, extent + 8) & ~(u64)(READER_PAGE - 1);
	size = page_reader_at(&j->reader, extent + 16) & ~(u64)(READER_PAGE - 1);
	if (!size || size >> WORD_BITS || block - start >= size ||
	    !is_all_own(j->s->snap, start, start + size))
		return false;
	last = start + size - READER_PAGE;
	return (start >> leaf_shift(j) != block >> leaf_shift(j) || extent_of(j, leaf, start) == extent) &&
	       (last >> leaf_shift(j) != block >> leaf_shift(j) ||
		(word_of(j, leaf, last) & EXTENT_MASK) == extent);
}

/* Is all of the root at @root in the data, with leaves or what leads to them only? */
static bool is_root(const struct jemalloc *j, taddr_t root)
{
	struct page_reader *reader = &(struct page_reader){ .snap = j->reader.snap, .addr = 1 };

	if (j->data_end - root < level_words(j) * 8)
		return false;
	for (size_t i = 0; i < level_words(j); i++) {
		u64 leaf = page_reader_at(reader, root + i * 8);

		if (leaf && !has_room(j->s->snap, leaf, level_words(j) * 8))
			return false;
	}
	return true;
}

/* Is the root there that would have @word at @at? Data that lead to ever more trees have none. */
static bool try_samples(struct jemalloc *j, taddr_t at, u64 word)
{
	if (!has_room(j->s->snap, word, level_words(j) * 8))
		return false;
	for (size_t i = 0; i < j->nr_samples && j->nr_tries++ < MAX_TRIES; i++) {
		u64 before = root_index(j, j->samples[i]) * 8;
		taddr_t leaf = at < j->data_start + before ? 0 : leaf_below(j, word, j->samples[i]);

		if (!leaf || !may_be_leaf(j, leaf) || !scan_jemalloc_leads_to(j, leaf, j->samples[i]))
			continue;
		j->nr_tries += ROOT_TRIES;
		if (!is_root(j, at - before))
			continue;
		j->root = at - before;
		return true;
	}
	return false;
}

/* Is there a root, of a narrow or of a wide tree, or of a wide one before 5.3? */
static bool is_root_here(struct jemalloc *j, taddr_t at, u64 word)
{
	for (int kind = 0; word && kind < 3; kind++) {
		j->is_wide = kind > 0;
		j->is_old = kind > 1;
		if (try_samples(j, at, word))
			return true;
	}
	return false;
}

static bool find_root_in(struct jemalloc *j, taddr_t start, taddr_t end)
{
	struct page_reader *data = &(struct page_reader){ .snap = j->reader.snap, .addr = 1 };

	j->data_start = start;
	j->data_end = end;
	if (end - start > MAX_DATA)
		end = start + MAX_DATA;
	for (taddr_t page = start; page < end; page += READER_PAGE) {
		const u64 *words = page_reader_read(data, page);

		for (size_t i = 0; words && i < READER_PAGE / 8; i++)
			if (is_root_here(j, page + i * 8, words[i]))
				return true;
	}
	return false;
}

/* Data of files, with the .bss behind it. */
static bool scan_jemalloc_find_root(struct jemalloc *j)
{
	const struct snapshot *snap = j->s->snap;

	for (size_t i = 0; i + 1 < snap->nr_maps && !is_late(snap); i++) {
		const struct snapshot_map *map = &snap->maps[i], *next = map + 1;

		if (map->ino && map->is_writable && !map->is_shared && next->start == map->end &&
		    !next->ino && next->is_writable && find_root_in(j, map->start, next->end))
			return true;
	}
	return false;
}

/* The allocators of glibc leave 16 bytes before a block of its own mapping. */
static bool may_be_jemalloc(const struct scan *s, taddr_t block)
{
	const struct snapshot_map *map = snapshot_map_find(s->snap, block);

	return map && !map->ino && map->is_writable && strcmp(map->path, "[heap]") != 0 &&
	       block % READER_PAGE != 16 && block >> WORD_BITS == 0;
}

/* The first block of [@start, @end) that no tree has so far; 0 = there is none. */
static taddr_t first_strange(const struct jemalloc *j, taddr_t start, taddr_t end)
{
	const struct scan *s = j->s;
	size_t i = array_search(k, 0, j->nr_in_tree, j->in_tree[k].end <= start);
	u32 first = scan_lower_bound(s, start);

	for (; first < s->nr && i < j->nr_in_tree && s->blocks[first].addr >= j->in_tree[i].start; i++)
		first = scan_lower_bound(s, j->in_tree[i].end);
	return first < s->nr && s->blocks[first].addr < end ? s->blocks[first].addr : 0;
}

/* By the first blocks of some mappings. */
static bool find_tree(struct jemalloc *j)
{
	const struct scan *s = j->s;

	j->nr_samples = j->nr_units = 0;
	j->root = 0;
	for (size_t i = 0; i < s->snap->nr_maps && j->nr_samples < MAX_SAMPLES; i++) {
		const struct snapshot_map *map = &s->snap->maps[i];
		taddr_t block = map->ino || !map->is_writable ? 0 : first_strange(j, map->start, map->end);

		if (block && may_be_jemalloc(s, block))
			j->samples[j->nr_samples++] = block;
	}
	return j->nr_samples && scan_jemalloc_find_root(j);
}

static void note_unit(struct jemalloc *j, u64 extent)
{
	u64 unit = extent >> UNIT_SHIFT;

	for (size_t i = j->nr_units; i > 0; i--)
		if (j->units[i - 1] == unit)
			return;
	if (j->nr_units < MAX_UNITS)
		j->units[j->nr_units++] = unit;
}

static bool has_block(const struct scan *s, taddr_t start, taddr_t end)
{
	u32 first = scan_lower_bound(s, start);

	return first < s->nr && s->blocks[first].addr < end;
}

/* Add [@start, @end), which lies above all others, to the @nr ranges at @of, with room for @max. 0 or -ENOMEM. */
static int scan_jemalloc_add_range(struct dead_range **of, size_t *nr, size_t *max, taddr_t start,
				   taddr_t end)
{
	struct dead_range *last = *nr ? *of + *nr - 1 : NULL;
	int err;

	if (last && last->end == start) {
		last->end = end;
		return 0;
	}
	err = array_reserve(*of, *max, *nr + 1);
	if (!err)
		(*of)[(*nr)++] = (struct dead_range){ start, end };
	return err;
}

/*
 * Before 5.3 the word has no state, but an extent that is not in use has no class. The last page of one in use may have
 * none either: so all of the extent must be there, as its description says.
 */
static bool is_without_class(struct jemalloc *j)
{
	const struct extent_run *run = &j->run;
	taddr_t extent = run->bits & EXTENT_MASK, in_page = READER_PAGE - 1;

	return run->start && run->bits >> CLASS_SHIFT >= NO_CLASS &&
	       (page_reader_at(&j->reader, extent + 8) & ~in_page) == run->start &&
	       (page_reader_at(&j->reader, extent + 16) & ~in_page) == run->end - run->start;
}

/* The pages of an extent are known. */
static int end_run(struct jemalloc *j)
{
	const struct extent_run run = j->run;
	bool is_free = run.bits >> STATE_SHIFT & STATE_MASK || is_without_class(j);
	int err;

	j->run.start = 0;
	if (!run.start)
		return 0;
	note_unit(j, run.bits & EXTENT_MASK);
	err = scan_jemalloc_add_range(&j->in_tree, &j->nr_in_tree, &j->max_in_tree, run.start, run.end);
	if (err)
		return err;
	/* Where all blocks are known, this one has free blocks in caches, or what jemalloc keeps for threads. */
	is_free |= j->knows_all && !has_block(j->s, run.start, run.end);
	if (is_free)
		return region_has_point(j->list, run.start, run.end) || has_block(j->s, run.start, run.end)
			       ? 0
			       : region_add_dead(j->list, run.start, run.end);
	/* After an attach, bytes that blocks have covered since are no roots. */
	return j->s->cover || (run.bits & IS_SLAB && has_block(j->s, run.start, run.end))
		       ? scan_jemalloc_add_range(&j->list->slabs, &j->list->nr_slabs, &j->list->max_slabs,
						 run.start, run.end)
		       : 0;
}

/* The page at @addr has the word @bits. */
static int scan_jemalloc_take_page(struct jemalloc *j, taddr_t addr, u64 bits)
{
	int err = 0;

	if (j->run.start && (j->run.bits & EXTENT_MASK) != (bits & EXTENT_MASK))
		err = end_run(j);
	if (!j->run.start)
		j->run = (struct extent_run){ .start = addr, .bits = bits };
	j->run.end = addr + READER_PAGE;
	return err;
}

static int take_leaf(struct jemalloc *j, taddr_t leaf, taddr_t base)
{
	int err = 0;

	for (u64 at = 0; at < level_words(j) && !err;) {
		/* A leaf need not begin at a page. */
		taddr_t addr = leaf + at * bytes_of_page(j), page = addr & ~(taddr_t)(READER_PAGE - 1);
		u64 nr = (page + READER_PAGE - addr + bytes_of_page(j) - 1) / bytes_of_page(j);
		bool is_there = page_reader_read(&j->reader, page);

		for (u64 i = 0; is_there && i < nr && at + i < level_words(j) && !err; i++) {
			u64 bits = word_of(j, leaf, (at + i) << PAGE_SHIFT);

			if (bits & EXTENT_MASK)
				err = scan_jemalloc_take_page(j, base + ((at + i) << PAGE_SHIFT), bits);
		}
		at += nr;
	}
	return err;
}

/* All leaves that the word @first of the root leads to, for the addresses from @base on. */
static int take_leaves(struct jemalloc *j, taddr_t first, taddr_t base)
{
	struct page_reader *node = &(struct page_reader){ .snap = j->reader.snap, .addr = 1 };
	int err = 0;

	note_unit(j, first);
	if (!j->is_wide)
		return take_leaf(j, first, base);
	for (u64 i = 0; i < WIDE_WORDS && !err; i++) {
		u64 leaf = page_reader_at(node, first + i * 8);

		if (!leaf || !may_be_leaf(j, leaf))
			continue;
		note_unit(j, leaf);
		err = take_leaf(j, leaf, base + (i << WIDE_LEAF_SHIFT));
	}
	return err;
}

static int take_extents(struct jemalloc *j)
{
	struct page_reader *root = &(struct page_reader){ .snap = j->reader.snap, .addr = 1 };
	int err = 0;

	/* User memory has the lower half of all addresses. */
	for (u64 i = 0; i < level_words(j) / 2 && !err; i++) {
		u64 first = page_reader_at(root, j->root + i * 8);

		if (first)
			err = take_leaves(j, first, i << (j->is_wide ? WIDE_ROOT_SHIFT : ROOT_SHIFT));
	}
	return err ? err : end_run(j);
}

/*
 * The size of the piece of jemalloc's own memory at @addr, and *@next, the one before it. 0 if there is none: the
 * unused rest that the header describes must end where the piece ends.
 */
static u64 own_piece(struct jemalloc *j, taddr_t addr, taddr_t *next)
{
	u64 words[HEADER_WORDS], unit = 1ULL << UNIT_SHIFT;

	for (size_t i = 0; i < HEADER_WORDS; i++)
		words[i] = page_reader_at(&j->reader, addr + i * 8);
	*next = words[1];
	if (!words[0] || words[0] % unit || words[1] % unit || words[3] <= addr ||
	    words[3] - addr > words[0] || words[3] + words[4] != addr + words[0])
		return 0;
	return is_own_memory(j->s->snap, addr) && is_own_memory(j->s->snap, addr + words[0] - 1) ? words[0]
												 : 0;
}

/* Add the piece that contains @unit, and those that its header leads to. */
static int add_own_memory(struct jemalloc *j, u64 unit)
{
	taddr_t addr = unit << UNIT_SHIFT, next;
	u64 size = 0;
	int err = 0;

	for (int back = 0; back < MAX_UNITS_BACK && !size && addr; back++, addr -= 1ULL << UNIT_SHIFT) {
		size = own_piece(j, addr, &next);
		if (size)
			break;
	}
	if (!size || (unit << UNIT_SHIFT) - addr >= size)
		return 0;
	for (size_t nr = 0; size && nr < MAX_UNITS && !err; nr++) {
		if (!has_block(j->s, addr, addr + size) && !region_has_point(j->list, addr, addr + size))
			err = region_add_dead(j->list, addr, addr + size);
		addr = next;
		size = addr ? own_piece(j, addr, &next) : 0;
	}
	return err;
}

/* The array of the table's entry @words: [*start, *end). False if it is no entry. */
static bool array_of(const u64 *words, taddr_t *start, taddr_t *end)
{
	u16 full = (u16)(words[2] >> 16), empty = (u16)(words[2] >> 32), head = (u16)words[0];
	u16 nr_free = (u16)(empty - head), size = (u16)(empty - full);

	*end = words[0] + nr_free;
	*start = *end - size;
	return words[0] % 8 == 0 && nr_free % 8 == 0 && size % 8 == 0 && nr_free <= size && words[0] > size;
}

/* Add the arrays of the table at @words, of at most @nr words. */
static int add_arrays(struct jemalloc *j, const u64 *words, size_t nr)
{
	taddr_t first, last, start, end;
	size_t nr_bins = 1;

	if (!array_of(words, &first, &last) || !is_own_memory(j->s->snap, first))
		return 0;
	while (nr_bins < MAX_BINS && (nr_bins + 1) * NR_BIN_WORDS <= nr &&
	       array_of(words + nr_bins * NR_BIN_WORDS, &start, &end) && start == last) {
		last = end;
		nr_bins++;
	}
	if (nr_bins < MIN_BINS || last - first < MIN_BINS * 8 || has_block(j->s, first, last))
		return 0;
	return region_add_dead(j->list, first, last);
}

/* Are the two @words an address where a leaf begins, and this leaf? */
static bool is_used_leaf(struct jemalloc *j, const u64 *words)
{
	u64 nr = root_index(j, words[0]);

	return nr < level_words(j) && words[0] && words[0] % (1ULL << leaf_shift(j)) == 0 && words[1] &&
	       words[1] == leaf_below(j, page_reader_at(&j->reader, j->root + nr * 8), words[0]);
}

/* An entry before 5.3: counters, and the end of an array that begins at @start or later. */
static bool is_old_bin(const u64 *words, taddr_t start)
{
	u64 nr_free = words[0] >> 32;

	return words[2] % 8 == 0 && words[2] > start && words[2] - start <= MAX_BIN_BYTES &&
	       nr_free * 8 <= words[2] - start && (s32)words[0] <= (s32)nr_free;
}

/* As add_arrays(), before 5.3. */
static int add_old_arrays(struct jemalloc *j, const u64 *words, size_t nr)
{
	taddr_t page = (words[2] - 8) & ~(taddr_t)(READER_PAGE - 1), leaf, extent, start, end;
	u64 index = root_index(j, page);
	size_t nr_bins = 1;

	while (nr_bins < MIN_BINS && (nr_bins + 1) * NR_BIN_WORDS <= nr &&
	       is_old_bin(words + nr_bins * NR_BIN_WORDS, words[nr_bins * NR_BIN_WORDS - 1]))
		nr_bins++;
	if (nr_bins < MIN_BINS || words[2] % 8 || index >= level_words(j) || !is_own_memory(j->s->snap, page))
		return 0;
	leaf = leaf_below(j, page_reader_at(&j->reader, j->root + index * 8), page);
	extent = leaf && !(word_of(j, leaf, page) & IS_SLAB) ? extent_of(j, leaf, page) : 0;
	start = page_reader_at(&j->reader, extent + 8);
	end = (start & ~(taddr_t)(READER_PAGE - 1)) +
	      (page_reader_at(&j->reader, extent + 16) & ~(u64)(READER_PAGE - 1));
	if (!extent || !is_old_bin(words, start) || words[nr_bins * NR_BIN_WORDS - 1] > end ||
	    has_block(j->s, start, end))
		return 0;
	return region_add_dead(j->list, start, end);
}

/* Add what a thread has of jemalloc's at @at, where @nr words are left of its data. */
static int add_thread_words(struct jemalloc *j, taddr_t at, const u64 *words, size_t nr)
{
	int err = 0;

	if (nr >= LEAF_WORDS && is_used_leaf(j, words))
		err = region_add_dead(j->list, at, at + (taddr_t)LEAF_WORDS * 8);
	if (!err && nr >= (size_t)MIN_BINS * NR_BIN_WORDS)
		err = add_arrays(j, words, nr);
	return err || nr < (size_t)MIN_BINS * NR_BIN_WORDS ? err : add_old_arrays(j, words, nr);
}

/* Thread-local data lies next to the thread pointer: below it on x86_64, above it on aarch64. */
static int scan_jemalloc_search_thread(struct jemalloc *j, taddr_t tp, u64 *words)
{
	const struct snapshot_map *map = tp ? snapshot_map_find(j->s->snap, tp) : NULL;
	taddr_t start, end;
	int err = 0;

	if (!map)
		return 0;
	start = tp - map->start > TLS_BYTES ? (tp & ~(taddr_t)7) - TLS_BYTES : map->start;
	end = map->end - tp > TLS_BYTES ? tp + TLS_BYTES : map->end;
	for (taddr_t at = start; at < end; at += 8)
		words[(at - start) / 8] = page_reader_at(&j->reader, at);
	for (size_t i = 0; i < (end - start) / 8 && !err; i++)
		err = add_thread_words(j, start + i * 8, words + i, (end - start) / 8 - i);
	return err;
}

static int search_threads(struct jemalloc *j)
{
	auto_free u64 *words = calloc(2 * TLS_BYTES / 8 + 1, sizeof(*words));
	int err = words ? 0 : -ENOMEM;

	for (size_t i = 0; i < j->s->snap->nr_threads && !err; i++)
		err = is_late(j->s->snap) ? -ETIME
					  : scan_jemalloc_search_thread(j, j->s->snap->threads[i].tp, words);
	return err;
}

static int scan_jemalloc_by_start(const void *a, const void *b)
{
	const struct dead_range *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

/* Take all that the tree says. The next one may have memory below it. */
static int take_tree(struct jemalloc *j)
{
	int err = take_extents(j);

	for (size_t i = 0; i < j->nr_units && !err; i++)
		err = add_own_memory(j, j->units[i]);
	if (!err)
		err = search_threads(j);
	if (!err && j->nr_in_tree)
		qsort(j->in_tree, j->nr_in_tree, sizeof(*j->in_tree), scan_jemalloc_by_start);
	if (!err && j->list->nr_slabs)
		qsort(j->list->slabs, j->list->nr_slabs, sizeof(*j->list->slabs), scan_jemalloc_by_start);
	return err;
}

int region_find_jemalloc(struct region_list *list, const struct scan *s)
{
	auto_free struct jemalloc *j = NULL;
	int err = 0;

	if (s->word_size != 8 || s->snap->is_big_endian)
		return 0;
	j = calloc(1, sizeof(*j));
	if (!j)
		return -ENOMEM;
	j->s = s;
	j->list = list;
	j->knows_all = !s->options.is_partial && !s->has_pending && !s->result.nr_overlaps;
	j->reader = (struct page_reader){ .snap = s->snap, .addr = 1 };
	for (u32 i = 0; i < MAX_TREES && !err && find_tree(j); i++)
		err = take_tree(j);
	free(j->in_tree);
	/* Pages that were read too late are not known. */
	return err ? err : is_late(s->snap) ? -ETIME : 0;
}

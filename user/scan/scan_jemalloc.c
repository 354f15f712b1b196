/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Memory that jemalloc 5 has for itself or has free: no roots. For user/scan/scan_regions.c. */
#include <errno.h>
#include <stdlib.h>

#include "user/lib/array.h"
#include "user/lib/cleanup.h"
#include "user/scan/jemalloc_tree.h"
#include "user/scan/scan_regions.h"
#include "user/scan/scan_state.h"

/*
 * The tree of pages says which memory jemalloc has. It is believed if a known block lies in an extent of it. Dead are:
 * - extents that are not in use. The words of their first and last page are the same but for flags;
 * - jemalloc's own memory, where the descriptions lie: they hold the addresses of extents, so of large blocks. It
 *   consists of pieces that begin at multiples of 2 MiB, with a header that says how much of the piece is used;
 * - the arrays of threads with blocks that are free. Words stay there when their blocks are given out. Thread-local
 *   data has a table of these arrays, which lie side by side. Before 5.3 they are an extent of their own;
 * - the leaves that a thread used last, in thread-local data: each with the first address that the leaf is for, where a
 *   block may lie.
 * - after an attach, the free blocks in these arrays, and free slots of slabs: some were never given out since, and
 *   hold what was there before.
 * Extents of small blocks are memory of the allocator alone if they hold a known block.
 */

enum {
	MAX_LOOKS = 1 << 13, /* pages of possible leaves, while the process is stopped */
	MAX_TREES = 4,	     /* of a process that has jemalloc several times */
	UNIT_SHIFT = 21,     /* pieces of its own memory are multiples of 2 MiB */
	MAX_UNITS = 4096,    /* of these 2 MiB */
	MAX_UNITS_BACK = 64, /* to the header of a piece */
	MAX_PAGES_BACK = 8,  /* to the extent of a thread's arrays */
	HEADER_WORDS = 5,
	LEAF_WORDS = 2, /* of a leaf that a thread used: first address, leaf */
	MIN_BINS = 16,
	MAX_BINS = 256,
	MAX_SLOTS = 512, /* of a slab */
	MAX_DEAD = 1 << 18,
};

/* Pages that have the same extent, so far. */
struct extent_run {
	taddr_t start, end; /* of the pages with this extent; start 0 = none */
	u64 bits;	    /* of the word of the first page */
};

struct jemalloc {
	const struct scan *s;
	struct region_list *list;
	struct jemalloc_tree tree;
	bool knows_all; /* no block may be alive that the scan does not know, as the new copy of a realloc */
	u64 units[MAX_UNITS]; /* of 2 MiB, that have descriptions */
	size_t nr_units;
	struct extent_run run;
};

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

/* Add the memory of the extent that was read last, which lies above all others of the tree. 0 or -ENOMEM. */
static int add_slab(struct region_list *list, const struct extent_run *run)
{
	struct dead_range *last = list->nr_slabs ? list->slabs + list->nr_slabs - 1 : NULL;
	int err;

	if (last && last->end == run->start) {
		last->end = run->end;
		return 0;
	}
	err = array_reserve(list->slabs, list->max_slabs, list->nr_slabs + 1);
	if (!err)
		list->slabs[list->nr_slabs++] = (struct dead_range){ run->start, run->end };
	return err;
}

/*
 * Before 5.3 the word has no state, and after a large block was freed it still has the class of this. The last page of
 * an extent in use may have no class: so all of the extent must be there, as its description says.
 */
static bool is_free_run(struct jemalloc *j)
{
	const struct extent_run *run = &j->run;
	struct jemalloc_extent e;

	if (run->bits >> JEMALLOC_STATE_SHIFT & JEMALLOC_STATE_MASK)
		return true;
	if (run->bits & JEMALLOC_IS_SLAB ||
	    (j->tree.layout->has_table && run->bits >> JEMALLOC_CLASS_SHIFT < JEMALLOC_NO_CLASS))
		return false;
	return jemalloc_tree_extent(&j->tree, run->bits, run->start, &e) && e.state != JEMALLOC_ACTIVE &&
	       (e.addr & ~(taddr_t)(JEMALLOC_PAGE - 1)) == run->start && e.size == run->end - run->start;
}

/*
 * Add the free slots of the slab @run, not all of which blocks have covered since heaptap came. Their number must be
 * that of the map.
 */
static int add_free_slots(struct jemalloc *j, const struct extent_run *run)
{
	u64 map[MAX_SLOTS / 64], slot, nr_slots, nr_free = 0;
	struct jemalloc_extent e;
	int err = 0;

	if (!jemalloc_tree_extent(&j->tree, run->bits, run->start, &e) || e.state != JEMALLOC_ACTIVE ||
	    !e.nr_free || j->list->nr_dead > MAX_DEAD)
		return 0;
	slot = jemalloc_block_bytes(&e);
	nr_slots = e.size / slot < MAX_SLOTS ? e.size / slot : MAX_SLOTS;
	for (u64 i = 0; i < nr_slots; i++) {
		if (i % 64 == 0)
			map[i / 64] = page_reader_at(&j->tree.books, e.books + JEMALLOC_MAP_AT + i / 8);
		nr_free += map[i / 64] >> i % 64 & 1;
	}
	for (u64 i = 0; i < nr_slots && nr_free == e.nr_free && !err; i++) {
		taddr_t addr = e.addr + i * slot;

		if (map[i / 64] >> i % 64 & 1 && !has_block(j->s, addr, addr + slot))
			err = region_add_dead(j->list, addr, addr + slot);
	}
	return err;
}

/* The pages of an extent are known. */
static int end_run(struct jemalloc *j)
{
	const struct extent_run run = j->run;
	bool is_free = is_free_run(j);

	j->run.start = 0;
	if (!run.start)
		return 0;
	note_unit(j, run.bits & JEMALLOC_EXTENT_MASK);
	/* Where all blocks are known, this one has free blocks in caches, or what jemalloc keeps for threads. */
	is_free |= j->knows_all && !has_block(j->s, run.start, run.end);
	if (is_free)
		return region_has_point(j->list, run.start, run.end) || has_block(j->s, run.start, run.end)
			       ? 0
			       : region_add_dead(j->list, run.start, run.end);
	if (j->s->cover && run.bits & JEMALLOC_IS_SLAB) {
		int err = add_free_slots(j, &run);

		if (err)
			return err;
	}
	/* After an attach, bytes that blocks have covered since are no roots. */
	return j->s->cover || (run.bits & JEMALLOC_IS_SLAB && has_block(j->s, run.start, run.end))
		       ? add_slab(j->list, &run)
		       : 0;
}

/* The page at @page has @word. */
static int take_word(void *ctx, taddr_t page, u64 word)
{
	struct jemalloc *j = ctx;
	int err = 0;

	if (!word)
		return 0;
	if (j->run.start && (j->run.bits ^ word) & JEMALLOC_EXTENT_MASK)
		err = end_run(j);
	if (!j->run.start) {
		j->run = (struct extent_run){ .start = page, .bits = word };
		note_unit(j, j->tree.node);
		note_unit(j, j->tree.leaf);
	}
	j->run.end = page + JEMALLOC_PAGE;
	return err;
}

/* Does the extent of @word have a known block? */
static int find_block(void *ctx, taddr_t page, u64 word)
{
	struct jemalloc *j = ctx;
	struct jemalloc_extent e;

	if (!word || !jemalloc_tree_extent(&j->tree, word, page, &e) || e.state != JEMALLOC_ACTIVE)
		return 0;
	return has_block(j->s, e.addr, (e.addr & ~(taddr_t)(JEMALLOC_PAGE - 1)) + e.size);
}

/*
 * The size of the piece of jemalloc's own memory at @addr, and *@next, the one before it. 0 if there is none: the
 * unused rest that the header describes must end where the piece ends.
 */
static u64 own_piece(struct jemalloc *j, taddr_t addr, taddr_t *next)
{
	u64 words[HEADER_WORDS], unit = 1ULL << UNIT_SHIFT;

	for (size_t i = 0; i < HEADER_WORDS; i++)
		words[i] = page_reader_at(&j->tree.nodes, addr + i * 8);
	*next = words[1];
	if (!words[0] || words[0] % unit || words[1] % unit || words[3] <= addr ||
	    words[3] - addr > words[0] || words[3] + words[4] != addr + words[0])
		return 0;
	return page_reader_own(j->s->snap, addr) && page_reader_own(j->s->snap, addr + words[0] - 8)
		       ? words[0]
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

/* Find the extent of the arrays [@start, @end): only its first and its last page have a word. */
static bool find_extent(struct jemalloc *j, taddr_t start, taddr_t end, struct jemalloc_extent *e)
{
	taddr_t page = start & ~(taddr_t)(JEMALLOC_PAGE - 1);

	for (u32 i = 0; i < MAX_PAGES_BACK; i++, page -= JEMALLOC_PAGE)
		if (jemalloc_tree_extent(&j->tree, jemalloc_tree_word(&j->tree, page), page, e))
			return !e->is_slab && start >= e->addr &&
			       end <= (e->addr & ~(taddr_t)(JEMALLOC_PAGE - 1)) + e->size;
	return false;
}

/*
 * Add the free blocks of a thread in @bin, all of @class. Old words are left in blocks that were free when heaptap
 * came, and in those whose allocation it did not see.
 */
static int add_cached(struct jemalloc *j, const struct jemalloc_bin *bin, u32 class)
{
	u64 size = jemalloc_class_bytes(class);
	int err = 0;

	for (taddr_t at = bin->start; at < bin->end && !err; at += 8) {
		taddr_t addr = page_reader_at(&j->tree.nodes, at);
		u64 word = jemalloc_tree_word(&j->tree, addr & ~(taddr_t)(JEMALLOC_PAGE - 1));

		if (word >> JEMALLOC_CLASS_SHIFT != class ||
		    (word & JEMALLOC_IS_SLAB) != (class < JEMALLOC_NR_SMALL))
			return 0;
		if (!has_block(j->s, addr, addr + size))
			err = region_add_dead(j->list, addr, addr + size);
	}
	return err;
}

/* Add the arrays that the table at @words leads to, which has at most @nr words. */
static int add_arrays(struct jemalloc *j, const u64 *words, size_t nr)
{
	struct jemalloc_bin first = { 0 }, bin;
	struct jemalloc_extent e;
	taddr_t last = 0, end;
	size_t nr_bins = 0;
	int err = 0;

	for (; nr_bins < MAX_BINS && (nr_bins + 1) * JEMALLOC_BIN_WORDS <= nr &&
	       jemalloc_bin_read(&j->tree, words + nr_bins * JEMALLOC_BIN_WORDS, last, &bin);
	     nr_bins++) {
		first = last ? first : bin;
		last = bin.end > last ? bin.end : last;
	}
	if (nr_bins < MIN_BINS || last - first.floor < MIN_BINS * 8)
		return 0;
	for (u32 n = 0; n < nr_bins && j->s->cover && !err; n++)
		if (jemalloc_bin_read(&j->tree, words + (size_t)n * JEMALLOC_BIN_WORDS, 0, &bin))
			err = add_cached(j, &bin, n);
	if (err)
		return err;
	if (j->tree.layout->has_table)
		return has_block(j->s, first.floor, last) || !page_reader_own(j->s->snap, first.floor)
			       ? 0
			       : region_add_dead(j->list, first.floor, last);
	if (!find_extent(j, first.floor, last, &e))
		return 0;
	end = (e.addr & ~(taddr_t)(JEMALLOC_PAGE - 1)) + e.size;
	return has_block(j->s, e.addr, end) ? 0 : region_add_dead(j->list, e.addr, end);
}

/* Add what a thread has of jemalloc's at @at, where @nr words are left of its data. */
static int add_thread_words(struct jemalloc *j, taddr_t at, const u64 *words, size_t nr)
{
	int err = 0;

	/* The address where a leaf begins, and this leaf. */
	if (nr >= LEAF_WORDS && words[0] && words[0] % (1ULL << jemalloc_leaf_shift(&j->tree)) == 0 &&
	    words[1] && words[1] == jemalloc_tree_leaf(&j->tree, words[0]))
		err = region_add_dead(j->list, at, at + (taddr_t)LEAF_WORDS * 8);
	return err ? err : add_arrays(j, words, nr);
}

static int search_threads(struct jemalloc *j)
{
	auto_free u64 *words = calloc(JEMALLOC_MAX_TLS, sizeof(*words));
	int err = words ? 0 : -ENOMEM;

	for (size_t i = 0; i < j->s->snap->nr_threads && !err; i++) {
		taddr_t start = 0;
		size_t nr = jemalloc_thread_words(&j->tree, j->s->snap->threads[i].tp, words, &start);

		err = page_reader_is_late(&j->tree.data) ? -ETIME : 0;
		for (size_t k = 0; k < nr && !err; k++)
			err = add_thread_words(j, start + k * 8, words + k, nr - k);
	}
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
	int err = jemalloc_tree_each(&j->tree, take_word, j);

	if (!err)
		err = end_run(j);
	for (size_t i = 0; i < j->nr_units && !err; i++)
		err = add_own_memory(j, j->units[i]);
	j->nr_units = 0;
	if (!err)
		err = search_threads(j);
	if (!err && j->list->nr_slabs)
		qsort(j->list->slabs, j->list->nr_slabs, sizeof(*j->list->slabs), scan_jemalloc_by_start);
	return err;
}

int region_find_jemalloc(struct region_list *list, const struct scan *s)
{
	auto_free struct jemalloc *j = calloc(1, sizeof(*j));
	int err = j ? 0 : -ENOMEM;

	for (u32 nth = 0; nth < MAX_TREES && !err; nth++) {
		j->s = s;
		j->list = list;
		j->knows_all = !s->options.is_partial && !s->has_pending && !s->result.nr_overlaps;
		j->tree.max_looks = MAX_LOOKS;
		err = jemalloc_tree_find(&j->tree, s->snap, s->snap->deadline_ns, nth);
		if (err == -ENOENT)
			return 0;
		if (!err)
			err = jemalloc_tree_each(&j->tree, find_block, j);
		if (err == 1)
			err = take_tree(j);
	}
	/* Pages that were read too late are not known. */
	return err || !s->snap->deadline_ns || !page_reader_is_late(&j->tree.data) ? err : -ETIME;
}

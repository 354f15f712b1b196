/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The books of jemalloc 5.0 to 5.3, for 64 bits and 4 KiB pages. For user/census/jemalloc*.c only.
 *
 * A tree of two levels has a word for each page: the address of the description of the extent that the page belongs to,
 * flags in its low bits, and the size class in its highest 16 bits. The root lies in the data of the file that has
 * jemalloc. Each extent has words for its first and its last page; an extent of small blocks has one for each page. A
 * description has a word of fields, then the address of the extent, and its size. An extent of small blocks has a map
 * of its free slots there, too.
 *
 * Where 5.3 was built on a machine with addresses of 57 bits, the tree is wide: of three levels, and with two words for
 * each page, the address and then the flags, with the size class from bit 5 on.
 */
#pragma once

#include "user/census/census_runs.h"

enum {
	JEMALLOC_LEVEL_WORDS = 1 << 18, /* of a level of the tree */
	JEMALLOC_WIDE_WORDS = 1 << 15,
	JEMALLOC_PAGE = 4096,
	JEMALLOC_PAGE_SHIFT = 12,
	JEMALLOC_LEAF_SHIFT = 30,
	JEMALLOC_WIDE_LEAF_SHIFT = 27,
	JEMALLOC_WIDE_ROOT_SHIFT = 42,
	JEMALLOC_NR_SMALL = 36, /* size classes of small blocks */
	JEMALLOC_MAX_SLOTS = 512,
	JEMALLOC_MAP_WORDS = JEMALLOC_MAX_SLOTS / 64,
	JEMALLOC_IS_SLAB = 1, /* flag of a word of the tree */
};
#define JEMALLOC_EXTENT_MASK ((1ULL << 48) - 64)

/* The places of fields in the first word of a description. */
struct jemalloc_layout {
	const char *version;
	u8 state, state_bits, class, free;
	bool has_table; /* the table of a thread's cache has the ends of arrays: 5.3 */
};

enum jemalloc_state { JEMALLOC_ACTIVE, JEMALLOC_DIRTY, JEMALLOC_MUZZY, JEMALLOC_RETAINED };

struct jemalloc_extent {
	taddr_t books; /* of its description */
	taddr_t addr;  /* of the extent, or of the block in it */
	u64 size;      /* bytes, whole pages from the page of addr on */
	u32 state;     /* enum jemalloc_state, or higher: in between */
	u32 class, arena, nr_free;
	bool is_slab;
};

struct jemalloc_books {
	struct census_walk *w;
	const struct jemalloc_layout *layout;
	taddr_t root;
	bool is_wide;
	u32 nr_looks; /* jemalloc_find(): pages of possible leaves that were read for this mapping */
	struct census_runs runs;
	u32 *arenas; /* owned; by jemalloc's number: index in out->arenas, plus 1 */
};

/* user/census/jemalloc_find.c */
/* Find the root of the tree, behind so many others as the walk says, and the layout. 0, -ENOENT, -ENOMEM or -ETIME. */
int jemalloc_find(struct jemalloc_books *j) __must_check;
/* Read the description that @word of the tree leads to, for the page at @page. False if it is none. */
bool jemalloc_read_extent(const struct jemalloc_books *j, u64 word, taddr_t page,
			  struct jemalloc_extent *out);
/*
 * Read the words of the tree from @at to the end of its page, at most 512. Those that are not in memory are 0. Returns
 * their number.
 */
size_t jemalloc_read_words(const struct jemalloc_books *j, taddr_t at, u64 *words);
/* Read from a leaf, too. Words of a wide one become those of a narrow one. *@next is behind them. */
size_t jemalloc_read_leaf(const struct jemalloc_books *j, taddr_t at, u64 *words, taddr_t *next);
/* Words of each level. */
u64 jemalloc_level_words(const struct jemalloc_books *j) __attribute__((pure));
/* Has the memory at @addr room for what leads to leaves? For a leaf? */
bool jemalloc_may_be_node(const struct jemalloc_books *j, taddr_t addr);
bool jemalloc_may_be_leaf(const struct jemalloc_books *j, taddr_t addr);
/* Bytes of a block in @e. */
u64 jemalloc_block_bytes(const struct jemalloc_extent *e) __attribute__((pure));
/* Bytes of a size class. */
u64 jemalloc_class_bytes(u32 class);

/* user/census/jemalloc_cached.c */
/* Mark the blocks in the caches of threads as free, and these caches as the allocator's own. 0, -ENOMEM, -ETIME. */
int jemalloc_mark_cached(struct jemalloc_books *j) __must_check;

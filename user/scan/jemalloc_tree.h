/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The books of jemalloc 5.0 to 5.3, for 64 bits and 4 KiB pages. For user/scan/ and user/census/.
 *
 * A tree of two levels has a word for each page: the address of the description of the extent that the page belongs to,
 * flags in its low bits, and the size class in its highest 16 bits. The root lies in the data of the file that has
 * jemalloc. Each extent has words for its first and its last page; an extent of small blocks has one for each page. A
 * description has a word of fields, then the address of the extent, and its size. An extent of small blocks has a map
 * of its free slots there, too.
 *
 * Where it was built on a machine with addresses of 57 bits, the tree is wide: of three levels, and with two words for
 * each page, the address and then the flags. Here these are told as one word, as a narrow tree has it.
 *
 * Thread-local data has a table with an entry of 24 bytes for each size class, beginning with the smallest. Each entry
 * leads to an array of free blocks. All arrays lie one behind the other, in memory of jemalloc itself.
 */
#pragma once

#include "user/scan/page_reader.h"

enum {
	JEMALLOC_PAGE = 4096,
	JEMALLOC_NR_SMALL = 36,	  /* size classes of small blocks */
	JEMALLOC_IS_SLAB = 1,	  /* flag of a word of the tree */
	JEMALLOC_STATE_SHIFT = 2, /* and 3 bits of enum jemalloc_state, since 5.3 */
	JEMALLOC_STATE_MASK = 7,
	JEMALLOC_CLASS_SHIFT = 48,
	JEMALLOC_NO_CLASS = 230, /* no block has it or a higher one */
	JEMALLOC_MAP_AT = 64,	 /* of the map of free slots, in a description */
	JEMALLOC_BIN_WORDS = 3,	 /* of an entry of a thread's table */
	JEMALLOC_TLS_BYTES = 32 << 10,
	JEMALLOC_MAX_TLS = 2 * JEMALLOC_TLS_BYTES / 8 + 1, /* words around a thread pointer */
};
#define JEMALLOC_EXTENT_MASK ((1ULL << 48) - 64)

/* The places of fields in the first word of a description. */
struct jemalloc_layout {
	const char *version;
	u8 state, state_bits, class, free;
	bool has_table; /* the table of a thread has the ends of arrays: 5.3 */
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

struct jemalloc_tree {
	struct page_reader data, nodes, leaves, books;
	const struct jemalloc_layout *layout;
	taddr_t root;
	bool is_wide;
	taddr_t node, leaf; /* of the word that jemalloc_tree_each() shows */
	u32 max_looks;	    /* pages of possible leaves that are read for each mapping */
};

/* Find the root behind @nth others, and the layout. -ENOENT or -ETIME. Set before: t->max_looks, t->books.may_fetch. */
int jemalloc_tree_find(struct jemalloc_tree *t, struct snapshot *snap, u64 deadline_ns, u32 nth) __must_check;
/* The leaf that has the word for @addr, and this word; 0 = none. */
taddr_t jemalloc_tree_leaf(struct jemalloc_tree *t, taddr_t addr);
u64 jemalloc_tree_word(struct jemalloc_tree *t, taddr_t addr);
u32 jemalloc_leaf_shift(const struct jemalloc_tree *t) __attribute__((pure)); /* of the addresses of a leaf */
/* Read the description that @word of the tree leads to, for the page at @page. False if it is none. */
bool jemalloc_tree_extent(struct jemalloc_tree *t, u64 word, taddr_t page, struct jemalloc_extent *out);
/*
 * Show all words with an extent, upwards; 0 for a part of the tree that is nowhere, from @page on. 0, -ETIME, or what
 * @visit returns, which ends it.
 */
typedef int jemalloc_word_fn(void *ctx, taddr_t page, u64 word);
int jemalloc_tree_each(struct jemalloc_tree *t, jemalloc_word_fn *visit, void *ctx) __must_check;

/* Bytes of a size class; of a block in @e. */
u64 jemalloc_class_bytes(u32 class) __attribute__((const));
u64 jemalloc_block_bytes(const struct jemalloc_extent *e) __attribute__((pure));

/* The free blocks of one size class of a thread lie at [start, end); their array begins at floor. */
struct jemalloc_bin {
	taddr_t floor, start, end;
};

/* Read the entry at @words. May its array follow on arrays that end at @last, which is 0 before the first? */
bool jemalloc_bin_read(const struct jemalloc_tree *t, const u64 *words, taddr_t last,
		       struct jemalloc_bin *out);
/* Read the words around the thread pointer @tp to @words, of JEMALLOC_MAX_TLS. Their number, and *@start of them. */
size_t jemalloc_thread_words(struct jemalloc_tree *t, taddr_t tp, u64 *words, taddr_t *start);

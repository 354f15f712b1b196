/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The books of gperftools' tcmalloc from 2.6 on, 64 bits, with 48-bit addresses. For user/census/tcmalloc*.c only.
 *
 * A map of two levels has a word for each page: the address of the description of the span that the page belongs to.
 * The root lies in the data of the file that has tcmalloc. Spans that are free or hold one large block have words for
 * their first and last page, those of small blocks for each page, and words of earlier spans remain. A span of small
 * blocks has a list of its free ones. Further free blocks are in the caches of threads, which say what size each class
 * has, and in the central lists of the classes.
 */
#pragma once

#include "user/census/census_runs.h"

enum {
	TCMALLOC_MAX_CLASSES = 128,
	TCMALLOC_ADDRESS_BITS = 48,
	TCMALLOC_PAGE = 4096, /* of this machine */
};

enum tcmalloc_location { TCMALLOC_IN_USE, TCMALLOC_FREE, TCMALLOC_RETURNED, TCMALLOC_NR_LOCATIONS };

struct tcmalloc_span {
	u64 start, nr; /* pages of tcmalloc */
	taddr_t free;  /* list */
	u32 nr_used;   /* blocks, with those in caches */
	u32 class;     /* 0 = one block */
	u32 location;  /* enum tcmalloc_location */
};

struct tcmalloc {
	struct census_walk *w;
	taddr_t data_start, data_end; /* of the file */
	taddr_t root;
	u32 shift, leaf_bits; /* of a page of tcmalloc; of the map */
	u32 nr_looks;	      /* of the search */
	struct census_runs runs;
	u32 sizes[TCMALLOC_MAX_CLASSES]; /* of blocks, by class */
	u32 nr_classes;			 /* the first has no size */
	taddr_t *caches;		 /* owned; of threads */
	size_t nr_caches, max_caches;
};

/* user/census/tcmalloc_find.c */
/* Find the root, and the caches of threads. 0, -ENOENT, -ENOMEM or -ETIME. */
int tcmalloc_find(struct tcmalloc *t) __must_check;
/* Read the description at @books. False if it is none. */
bool tcmalloc_read_span(const struct tcmalloc *t, taddr_t books, struct tcmalloc_span *out);
/* Read the words from @at to the end of its page, at most 512. Those not in memory are 0. Returns their number. */
size_t tcmalloc_read_words(const struct tcmalloc *t, taddr_t at, u64 *words);

/* user/census/tcmalloc_cached.c */
/* Find the caches of threads from the data and from thread-local data: they have the sizes. 0, -ENOENT, -ENOMEM. */
int tcmalloc_find_caches(struct tcmalloc *t) __must_check;
/* Mark the blocks in caches of threads, and in the central lists, as free. 0, -ENOMEM or -ETIME. */
int tcmalloc_mark_cached(struct tcmalloc *t) __must_check;

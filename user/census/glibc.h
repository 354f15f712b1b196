/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The books of glibc's malloc, versions 2.28 to 2.43. For user/census/glibc*.c only.
 *
 * A chunk has a word with the size of the chunk before (if that one is free), a word with its own size and three
 * flags, then the bytes of the program, which go on into the first word of the next chunk. An arena lists its free
 * chunks in bins; the main arena lies in the data of libc, all arenas are linked in a ring.
 */
#pragma once

#include "user/census/census_walk.h"

enum {
	CHUNK_PREV_IN_USE = 1, /* the chunk before is in use */
	CHUNK_IS_MAPPED = 2,
	CHUNK_FLAGS = 7,
	NR_BINS = 127,
};

/* The differences between versions and word sizes. */
struct glibc_layout {
	u8 w;	    /* bytes of a word */
	u8 nr_fast; /* lists of small free chunks; none since 2.43 */
	u16 bins;   /* offset of the bins in an arena; two pointers lie before them: top, last remainder */
};

/* One copy of glibc in the process. */
struct glibc {
	struct census_walk *w;
	struct census_blocks *out;
	struct glibc_layout layout;
	taddr_t data_start, data_end; /* of the file that has the main arena */
	taddr_t main;		      /* the main arena */
	u64 align;		      /* of the program's blocks */
	u32 first_arena, nr_arenas;   /* in out->arenas; the main arena is the first */
	/* Counters of blocks with a mapping of their own. */
	bool has_counters;
	u64 nr_mapped, mapped_bytes;
	taddr_t brk_start; /* first byte of the main arena */
	/* Chunks that may be tables of thread caches, with the size of such a table; owned. */
	taddr_t *tables;
	size_t nr_tables, max_tables;
	s64 table_offset; /* from a thread pointer to the pointer to the table */
	bool wants_full;  /* learn it from tables with blocks only */
};

/* Sums of the links between the free chunks of an arena, in both directions. */
struct glibc_links {
	u64 forward, back;
};

/* user/census/glibc_find.c */
/* Find the next main arena, from mapping *@map on, and its layout. 0; -ENOENT no more; -ENOMEM, -ETIME. */
int glibc_find(struct glibc *g, size_t *map) __must_check;
/* Find the counters of mapped blocks. Needs brk_start. */
int glibc_find_counters(struct glibc *g) __must_check;
/* A field of the arena at @arena, counted in words from the first bin. */
bool glibc_field(const struct glibc *g, taddr_t arena, s64 index, u64 *value);

/* user/census/glibc_arenas.c */
/* Add the arenas and their segments. 0, -ENOMEM or -ETIME. */
int glibc_add_arenas(struct glibc *g) __must_check;
/* The address of the last free part of @arena, 0 if it has none. */
taddr_t glibc_top(const struct glibc *g, taddr_t arena);

/* user/census/glibc_mapped.c */
/* Add a segment for each block with a mapping of its own. 0, -ENOMEM or -ETIME. */
int glibc_add_mapped(struct glibc *g) __must_check;

/* user/census/glibc_chunks.c */
/* Walk all chunks of @segment, enter the blocks, check the free ones. 0, -ENOMEM or -ETIME. */
int glibc_walk_segment(struct glibc *g, struct census_segment *segment,
		       struct glibc_links *links) __must_check;
/* Check that the bins of arena @arena (index) have the free chunks of its segments, whose links are @sums. */
void glibc_check_bins(const struct glibc *g, u32 arena, const struct glibc_links *sums);

/* user/census/glibc_free.c */
/* Mark blocks that are free, but look as if they were in use: in thread caches and fast bins. 0, -ENOMEM, -ETIME. */
int glibc_mark_free(struct glibc *g) __must_check;
/* Has the table of a thread cache chunks of this size, in some version? */
bool glibc_is_table_size(const struct glibc *g, u64 chunk_size);

/* The bytes of a chunk's header before the program's bytes, the smallest chunk. */
static inline u64 glibc_header(const struct glibc *g)
{
	return 2ULL * g->layout.w;
}
static inline u64 glibc_min_chunk(const struct glibc *g)
{
	return 4ULL * g->layout.w;
}

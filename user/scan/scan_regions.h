/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Bytes outside blocks that are not roots. For user/scan/scan*.c only. */
#pragma once

#include "user/lib/types.h"

struct scan;
struct snapshot;
struct snapshot_map;
struct snapshot_thread;

enum region_kind {
	REGION_NEVER,	/* no byte is a root */
	REGION_PAGES,	/* pages that hold a part of a block are not roots */
	REGION_COVERED, /* bytes that blocks have covered are not roots; others may be from before the attach */
	REGION_HEAP,	/* no byte is a root, unless a thread's stack or TLS lies there */
};

struct scan_region {
	taddr_t start, end;
	enum region_kind kind;
	bool is_glibc;	/* surely memory of glibc's allocator */
	bool has_freed; /* in REGION_PAGES: bytes that blocks have covered are no roots either */
};

/* The stack pointer or the thread pointer of a thread. */
struct point {
	taddr_t addr;
	u32 word; /* index in snapshot.words */
};

/* Memory of an allocator that is cut into slots of one size, each with one block at most. */
struct slot_page {
	taddr_t start, first, end; /* of the page; of the first slot; of the last one */
	u64 slot;
};

/* Bytes that surely hold nothing of use, inside or outside of blocks. */
struct dead_range {
	taddr_t start, end;
};

struct region_list {
	struct scan_region *regions; /* owned; by address */
	size_t nr, max;
	struct point *points; /* owned; by address */
	size_t nr_points;
	struct dead_range *dead; /* owned; by address */
	size_t nr_dead, max_dead;
	struct dead_range *slabs; /* owned; by address; memory that belongs to the allocator alone */
	size_t nr_slabs, max_slabs;
	struct slot_page *pages; /* owned; by address */
	size_t nr_pages, max_pages;
	taddr_t *
		cached; /* owned; descriptors of threads that have ended, whose stacks glibc keeps for later ones */
	size_t nr_cached, max_cached;
	taddr_t top; /* first byte that glibc's main arena has not given out yet; 0 = not known */
};

/* Find the regions of the moment. 0 or -ENOMEM. */
int region_list_init(struct region_list *list, const struct scan *s) __must_check;
void region_list_fini(struct region_list *list);
/* True if the stack pointer or thread pointer of a thread lies in [start, end). */
bool region_has_point(const struct region_list *list, taddr_t start, taddr_t end);

/*
 * user/scan/scan_chunks.c, for words of 8 bytes in the byte order of this machine. The end of the glibc chunk of the
 * block at @block. The block's bytes are at @p, and the 8 bytes before @p are readable. 0 if it is no such chunk.
 */
taddr_t chunk_end(taddr_t block, const u8 *p);
/*
 * Find the free chunks in [from, to). The bytes of this range, and 16 more, are at @p. Fills up to @max of
 * @free_ranges, ascending. Returns their number, or -1 if chunks do not lead from @from exactly to @to.
 */
s32 chunk_find_free(taddr_t from, taddr_t to, const u8 *p, struct dead_range *free_ranges, u32 max);

/* The word at @p, in the word size and byte order of the process. */
u64 region_word(const struct snapshot *snap, const u8 *p);

/* Is @map of a C library: libc.so.6, libc-2.31.so? Not of libc-client.so. */
bool region_is_libc(const struct snapshot_map *map) __attribute__((pure));

/* The lowest address of the stack of @thread that is in use. */
taddr_t region_stack_end(const struct snapshot *snap, const struct snapshot_thread *thread);

/* user/scan/scan_leaf.c: find the threads whose function calls others, and so has no red zone. 0 or -ENOMEM. */
int region_find_callers(struct snapshot *snap) __must_check;
/* user/scan/scan_threads.c: add dead ranges. The points are known already. 0 or -ENOMEM. */
int region_find_dead(struct region_list *list, const struct scan *s) __must_check;
/* user/scan/scan_exit.c: add the frames of exit(). Errors mean that it stays a root. 0 or -ENOMEM. */
int region_find_exit(struct region_list *list, const struct scan *s) __must_check;
/* user/scan/scan_jemalloc.c: add what jemalloc has for itself, or has free; fill the slabs. 0, -ETIME or -ENOMEM. */
int region_find_jemalloc(struct region_list *list, const struct scan *s) __must_check;
/* user/scan/scan_mimalloc.c: fill the pages, each of which has a known block. 0 or -ENOMEM. */
int region_find_mimalloc(struct region_list *list, const struct scan *s) __must_check;
/* user/scan/scan_tcmalloc.c: add the table of live blocks of its debug libraries. 0 or -ENOMEM. */
int region_find_tcmalloc(struct region_list *list, const struct scan *s) __must_check;
/* user/scan/scan_stdio.c: add the buffers of glibc's streams. 0 or -ENOMEM. */
int region_find_stdio(struct region_list *list, const struct scan *s) __must_check;
/* Add one dead range, in any order. 0 or -ENOMEM. */
int region_add_dead(struct region_list *list, taddr_t start, taddr_t end) __must_check;

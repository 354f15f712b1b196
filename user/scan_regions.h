/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Bytes outside blocks that are no roots. For user/scan*.c only. */
#pragma once

#include "user/lib/types.h"

struct scan;
struct snapshot;

enum region_kind {
	REGION_NEVER,	/* no byte of it */
	REGION_PAGES,	/* not those pages that hold a part of a block */
	REGION_COVERED, /* where blocks have been; the rest may be from before the books */
	REGION_HEAP,	/* no byte of it, unless a thread's stack or TLS lies there */
};

struct region {
	taddr_t start, end;
	enum region_kind kind;
	bool is_glibc; /* surely its, and nobody else's */
};

/* An address that a thread stands on: its stack pointer or thread pointer. */
struct point {
	taddr_t addr;
	u32 word; /* index in snapshot.words */
};

/* Bytes that surely hold nothing any more, in blocks or outside. */
struct dead_range {
	taddr_t start, end;
};

struct region_list {
	struct region *regions; /* owned; by address */
	size_t nr;
	struct point *points; /* owned; by address */
	size_t nr_points;
	struct dead_range *dead; /* owned; by address */
	size_t nr_dead;
	taddr_t top; /* of glibc's main arena: where what it has not given out yet begins; 0 = not known */
};

int region_list_init(struct region_list *list, const struct scan *s) __must_check;
void region_list_fini(struct region_list *list);
/* True if a thread stands in [start, end). */
bool region_has_point(const struct region_list *list, taddr_t start, taddr_t end);

/*
 * scan_chunks.c, for words of 8 bytes in our order. The end of the glibc chunk of the block at @block, whose bytes are
 * @p and which 8 bytes lie before; 0 if there is none.
 */
taddr_t chunk_end(taddr_t block, const u8 *p);
/*
 * Free chunks in [from, to); its bytes and the 16 behind are at @p. Fills up to @max of @free_ranges, ascending, and
 * returns how many; -1 if chunks do not lead from @from exactly to @to.
 */
s32 chunk_find_free(taddr_t from, taddr_t to, const u8 *p, struct dead_range *free_ranges, u32 max);

/* The word at @p, in the process's size and order. */
u64 region_word(const struct snapshot *snap, const u8 *p);

/* scan_threads.c: fill dead. Points are there. 0 or -ENOMEM. */
int region_find_dead(struct region_list *list, const struct scan *s) __must_check;
/* For it: add one, in any order; then sort, and join those that touch. */
int region_add_dead(struct region_list *list, taddr_t start, taddr_t end) __must_check;
void region_sort_dead(struct region_list *list);

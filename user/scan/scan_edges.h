/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Pointers between blocks: written in one pass over memory, followed later. For user/scan/scan*.c only. */
#pragma once

#include "user/lib/types.h"

enum { EDGE_GROUP = 16 }; /* blocks per entry of groups */

/*
 * Pointers from blocks to blocks, in the order of the source blocks, as variable-length numbers:
 * 0: end of the source block. 1, offset / word size: the address of a virtual table is there.
 * Another number is a pointer: (zigzag of target - source) << 1 | is_interior; an interior one is followed by
 * the offset in the target.
 */
struct edge_store {
	u8 *bytes; /* owned */
	u64 nr, capacity, limit;
	u64 *groups; /* owned; where each EDGE_GROUP-th block begins in bytes */
	u32 open;    /* source block that is being written */
};

/*
 * Pointers of some blocks in a row, written while other threads write other parts. Positions of groups go directly
 * into the array of the store, where no other part writes them. edges_append() makes them right.
 */
struct edge_part {
	u8 *bytes; /* owned */
	size_t nr, max;
	u64 *groups;	 /* of the store */
	u32 first, open; /* source blocks; first = UINT32_MAX: the part is empty */
	u32 last_target;
	u64 last_offset;
};

int edges_init(struct edge_store *e, u32 nr_blocks, u64 limit) __must_check;
void edges_fini(struct edge_store *e);
void edge_part_init(struct edge_part *p, const struct edge_store *e);
void edge_part_fini(struct edge_part *p);
/* Add a pointer, or the address of a virtual table. @source never decreases. 0 or -ENOMEM. */
int edges_add(struct edge_part *p, u32 source, u32 target, u64 offset) __must_check;
int edges_add_vptr(struct edge_part *p, u32 source, u64 offset_words) __must_check;
/*
 * Move the contents of @p to the end of @e. The first block of @p may be the last one of the part before. 0; -E2BIG
 * past the limit; -ENOMEM.
 */
int edges_append(struct edge_store *e, struct edge_part *p) __must_check;
/* End all blocks: no more pointers come. 0, -E2BIG or -ENOMEM. */
int edges_finish(struct edge_store *e, u32 nr_blocks) __must_check;

/* Go through the pointers of a block. */
struct edge_iter {
	const u8 *at;
	u32 source;
	u32 target;
	u64 offset; /* 0 = start */
};
void edge_begin(struct edge_iter *it, const struct edge_store *e, u32 source);
bool edge_next(struct edge_iter *it);
/* Skip the rest of this block. Then the caller sets source to the next block. */
void edge_skip(struct edge_iter *it);
/* True if @block holds the address of a virtual table at @offset_words. */
bool edge_has_vptr(const struct edge_store *e, u32 block, u64 offset_words);

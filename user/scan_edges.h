/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Pointers between blocks: written in one pass over memory, followed later. For user/scan*.c only. */
#pragma once

#include "user/lib/types.h"

enum { EDGE_GROUP = 16 }; /* blocks per entry of groups */

/*
 * Pointers from blocks to blocks, in the order of the blocks, as variable-length numbers:
 * 0 ends a block; 1, offset / word size: there is an address of a virtual table;
 * else (zigzag of target - source) << 1 | is_interior, and if interior the offset in the target.
 */
struct edge_store {
	u8 *bytes; /* owned */
	u64 nr, capacity, limit;
	u64 *groups; /* owned; position of each EDGE_GROUP-th block */
	u32 open;    /* block being written */
};

/*
 * Pointers of some blocks in a row, written while another thread writes those of others. Positions of groups are
 * put into the store, whose part of the array is this one's alone, and become right when it is appended.
 */
struct edge_part {
	u8 *bytes; /* owned */
	u64 nr, capacity;
	u64 *groups;	 /* of the store */
	u32 first, open; /* blocks; first = UINT32_MAX: empty */
	u32 last_target;
	u64 last_offset;
};

int edges_init(struct edge_store *e, u32 nr_blocks, u64 limit) __must_check;
void edges_fini(struct edge_store *e);
void edge_part_init(struct edge_part *p, const struct edge_store *e);
void edge_part_fini(struct edge_part *p);
/* @source never goes down. */
int edges_add(struct edge_part *p, u32 source, u32 target, u64 offset) __must_check;
int edges_add_vptr(struct edge_part *p, u32 source, u64 offset_words) __must_check;
/* Empty @p into @e; its first block may be the last one of the part before. -E2BIG past the limit. */
int edges_append(struct edge_store *e, struct edge_part *p) __must_check;
/* No more pointers: end all blocks. */
int edges_finish(struct edge_store *e, u32 nr_blocks) __must_check;

/* Walk over the pointers of a block. */
struct edge_iter {
	const u8 *at;
	u32 source;
	u32 target;
	u64 offset; /* 0 = start */
};
void edge_begin(struct edge_iter *it, const struct edge_store *e, u32 source);
bool edge_next(struct edge_iter *it);
/* To the next block, which the caller makes the source: instead of edge_next() to its end. */
void edge_skip(struct edge_iter *it);
/* True if @block holds the address of a virtual table at @offset_words. */
bool edge_has_vptr(const struct edge_store *e, u32 block, u64 offset_words);

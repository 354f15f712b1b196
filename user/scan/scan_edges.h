/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Pointers between blocks: written in one pass over memory, followed later. For user/scan/scan*.c only. */
#pragma once

#include "user/lib/types.h"

enum { EDGE_GROUP = 64 };				 /* blocks per entry of groups */
#define EDGE_GROUP_AT (UINT64_MAX >> (IS_AGENT ? 0 : 8)) /* its bits that are a place in bytes */

/*
 * Pointers that may mean the end of the block before, and what scan_ends.c finds out about them: bits by block, owned.
 * NULL: no bits.
 */
struct end_bits {
	u64 *may;    /* such pointers to these blocks mean an end: they count as ones to the middle */
	u64 *surely; /* the same, and they hold nothing */
	u64 *begins; /* beside a pointer to the block there is one to its end, where no block is */
	u64 *links;  /* the first words of these blocks, which may be links of free lists, are such */
	u64 *threes; /* three words say that one to the block behind is the end of this one */
	u64 *tails;  /* pointers to the end of these blocks, where no block begins, hold them */
};

static inline bool end_bit(const u64 *bits, u32 block)
{
	return bits && bits[block / 64] >> block % 64 & 1;
}

/* The pointers of one block take so many bytes, too many for store.lens. */
struct edge_long {
	u32 block;
	u64 bytes;
};

/*
 * Pointers from blocks to blocks, in the order of the source blocks, as numbers of variable length:
 * 0, offset / word size: the address of a virtual table is there. 1, pointer, offset: a pointer to this offset in the
 * target, or for offset 0 one to its start that may mean the end of the block before. 2 to 6, pointer: one to offset 0,
 * 8, 16, 24, 32. 7, pointer: one to the start by the first word of the source, which may be a link of a free list.
 * 8, pointer: one to the end of the target, where no block begins.
 * Another number is a pointer to the offset of most: 9 + zigzag of target - source, modulo the number of blocks. So
 * each number is less than that of blocks but for 9, and one of 4 million takes 22 bits. The agent has 0, 1, and
 * pointers from 2 on. The offset of most of a group is the last one of 2 to 6 before it, in steps of 8 bytes in the
 * upper byte of groups; in the first group of a part, which does not know it, all pointers have their code.
 * The two low bits of the first byte of a number are the number of bytes that follow; 3 means a varint. The number
 * begins in the other bits.
 */
struct edge_store {
	u8 *bytes; /* owned */
	u64 nr, capacity, limit;
	u64 *groups; /* owned; where each EDGE_GROUP-th block begins in bytes, and the offset of most */
	u8 *lens;    /* owned; bytes of each block; LEN_LONG: see longs */
	struct edge_long *longs; /* owned; by block */
	size_t nr_longs, max_longs;
	u32 nr_blocks;
	const struct end_bits *ends; /* borrowed; NULL until they are decided */
	u32 open;		     /* source block that is being written */
	u64 open_len;		     /* its bytes so far */
};

/*
 * Pointers of some blocks in a row, written while other threads write other parts. Positions of groups and lengths of
 * blocks go directly into the arrays of the store, where no other part writes them: all but those of the first and the
 * last block. edges_append() makes them right.
 */
struct edge_part {
	u8 *bytes; /* owned */
	size_t nr, max;
	u64 *groups; /* of the store */
	u8 *lens;
	struct edge_long *longs; /* owned; of blocks between first and open */
	size_t nr_longs, max_longs;
	u32 nr_blocks;
	u8 near, last_near; /* steps of most pointers of the group, and of the last pointer */
	u32 first, open;    /* source blocks; first = UINT32_MAX: the part is empty */
	size_t first_end;   /* where the bytes of first end, once open is another */
	size_t open_at;	    /* where those of open begin */
	u32 last_target;
	u64 last_offset;
};

int edges_init(struct edge_store *e, u32 nr_blocks, u64 limit) __must_check;
void edges_fini(struct edge_store *e);
void edge_part_init(struct edge_part *p, const struct edge_store *e);
void edge_part_fini(struct edge_part *p);
/* Add a pointer, or the address of a virtual table. @source never decreases. 0 or -ENOMEM. */
int edges_add(struct edge_part *p, u32 source, u32 target, u64 offset, bool may_be_end) __must_check;
int edges_add_link(struct edge_part *p, u32 source, u32 target) __must_check;
int edges_add_tail(struct edge_part *p, u32 source, u32 target) __must_check;
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
	const struct edge_store *e;
	const u8 *at, *end;
	u32 source;
	u32 target;
	u64 offset; /* 0 = start; 1 for one that means the end of the block before */
	bool may_be_end, is_link, is_tail;
	u8 near; /* steps of most pointers of the group */
};
void edge_begin(struct edge_iter *it, const struct edge_store *e, u32 source);
bool edge_next(struct edge_iter *it);
/* Go on with the next block, wherever in this one. */
void edge_next_source(struct edge_iter *it);
/* True if @block holds the address of a virtual table at @offset_words. */
bool edge_has_vptr(const struct edge_store *e, u32 block, u64 offset_words);
u64 edges_memory(const struct edge_store *e);

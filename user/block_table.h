/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Live blocks by address, for heap.c: 30 to 38 bytes of memory a block, while it grows too. */
#pragma once

#include "user/budget.h"

/*
 * One slot. The address is kept only as its hash (block_table_addr() turns it back), slots are in the
 * order of hashes.
 */
struct block {
	u64 key;	   /* 0 = empty */
	u64 size : 48;	   /* bytes, see BLOCK_MAX_SIZE */
	u64 epoch : 12;	   /* of the books when it came */
	u64 time_high : 4; /* ms since the books began, bits 32 to 35: two years */
	u32 row;
	u32 time_low;
};

#define BLOCK_MAX_SIZE	  ((1ULL << 48) - 1)
#define BLOCK_MAX_TIME_MS ((1ULL << 36) - 1)

/* Plain data; only block_table.c writes it. */
struct block_table {
	struct block *slots;   /* owned, mapped; NULL until the first block comes */
	u64 nr;		       /* blocks */
	u64 bytes;	       /* mapped */
	u64 nr_homes;	       /* slots that a hash can point to */
	u64 nr_slots;	       /* these and the spare ones behind, without the empty one at the end */
	u64 mul[2];	       /* random and odd: no target can foresee the order */
	u64 inverse[2];	       /* of mul, modulo 2^64 */
	struct budget *budget; /* borrowed */
};

/* An empty table; takes no memory yet. @seed should be hard to guess; @budget must outlive it. */
void block_table_init(struct block_table *t, u64 seed, struct budget *budget);
void block_table_fini(struct block_table *t);

/* Make *@out, not initialized before, a copy with memory from @budget. 0 or -ENOMEM. */
int block_table_copy(struct block_table *out, const struct block_table *t,
		     struct budget *budget) __must_check;

/* The block at @addr or NULL; valid until the next put or del. */
struct block *block_table_find(const struct block_table *t, taddr_t addr);

/*
 * The slot for a block at @addr (not 0), valid until the next put or del. Returns 1 if it is in use: *@out is
 * the block there; 0 if it is new: *@out has all fields but the key zero; or -ENOMEM, nothing changed.
 */
int block_table_put(struct block_table *t, taddr_t addr, struct block **out) __must_check;

/* Remove @b, a result of find or put. Never fails; gives memory back when the table became sparse. */
void block_table_del(struct block_table *t, struct block *b);

/* The block after @prev in slot order, the first for NULL; NULL at the end. */
struct block *block_table_next(const struct block_table *t, const struct block *prev);

taddr_t block_table_addr(const struct block_table *t, const struct block *b);

/* A find, put or del of @addr comes soon. */
void block_table_prefetch(const struct block_table *t, taddr_t addr);

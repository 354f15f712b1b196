/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Live blocks by address, for user/heap/heap.c. Takes 30 to 38 bytes per block, also while the table grows. */
#pragma once

#include "user/heap/budget.h"

/*
 * One slot. The hash of the address stands for the address, and block_table_addr() computes the address from it.
 * Slots are in the order of hashes.
 */
struct block {
	u64 key;	    /* 0 = empty */
	u64 size : 47;	    /* bytes, see BLOCK_MAX_SIZE; sampled: block_size() */
	u64 is_more : 1;    /* sampled: it counts for one block more (heap_sample.c) */
	u64 thread : 12;    /* that allocated it: a row of the thread table, or THREADS_MAX */
	u64 order_high : 4; /* bits 32 to 35 of its place in the order of allocations, which is its time, too */
	u32 row : 26;	    /* less than ROWS_MAX */
	u32 epoch : 6;	    /* epoch of the heap at its allocation */
	u32 order_low;	    /* bits 0 to 31 */
};

#define BLOCK_MAX_SIZE	((1ULL << 47) - 1)
#define BLOCK_MAX_ORDER ((1ULL << 36) - 1)

static inline u64 block_order(const struct block *b)
{
	return (u64)b->order_high << 32 | b->order_low;
}

static inline void block_set_order(struct block *b, u64 order)
{
	b->order_low = (u32)order;
	b->order_high = order >> 32;
}

/* Plain data. Only user/heap/block_table.c writes it. */
struct block_table {
	struct block *slots; /* owned, mapped; NULL until the first block comes */
	u64 nr;		     /* blocks */
	u64 bytes;	     /* mapped */
	u64 nr_homes;	     /* slots that are the home of some hash */
	u64 nr_slots;	/* the homes and the spare slots behind them, without the empty slot at the end */
	u64 mul[2];	/* random and odd, so that no target can choose addresses that collide */
	u64 inverse[2]; /* of mul, modulo 2^64 */
	struct budget *budget; /* borrowed */
};

/* Make an empty table, which takes no memory yet. @seed should be hard to guess. @budget must outlive the table. */
void block_table_init(struct block_table *t, u64 seed, struct budget *budget);
void block_table_fini(struct block_table *t);

/* Make *@out, which is not initialized, a copy with memory from @budget. 0 or -ENOMEM. */
int block_table_copy(struct block_table *out, const struct block_table *t,
		     struct budget *budget) __must_check;

/* The block at @addr or NULL. Valid until the next put or del. */
struct block *block_table_find(const struct block_table *t, taddr_t addr);

/*
 * Put the slot for a block at @addr, which is not 0, into *@out. Valid until the next put or del. Returns 1 if the
 * block existed already; 0 if it is new, then all fields but the key are zero; -ENOMEM: nothing has changed.
 */
int block_table_put(struct block_table *t, taddr_t addr, struct block **out) __must_check;

/* Remove @b, a result of find or put. Never fails. Returns memory to the system when the table gets sparse. */
void block_table_del(struct block_table *t, struct block *b);

/* The block after @prev in the order of slots; the first block for NULL. NULL at the end. */
struct block *block_table_next(const struct block_table *t, const struct block *prev);

taddr_t block_table_addr(const struct block_table *t, const struct block *b);

/* Load the slots of @addr into the cache, because a find, put or del of it comes soon. */
void block_table_prefetch(const struct block_table *t, taddr_t addr);

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A hash table that finds items of an array by what they contain. The table keeps the number of each item and a part
 * of its hash. The caller computes hashes and compares items:
 *
 *	u32 item, at = 0;
 *
 *	while ((item = hash_index_next(&table, hash, &at)) != HASH_NO_ITEM)
 *		if (is_wanted(&items[item]))
 *			break;
 */
#pragma once

#include "user/lib/types.h"

struct hash_slot {
	u32 hash; /* upper half of the item's */
	u32 item; /* number + 1; 0 = the slot is empty */
};

/* All zero: an empty table without memory. */
struct hash_index {
	struct hash_slot *slots; /* owned; 1 << bits of them; NULL as long as the table is empty */
	u32 bits;
	u32 nr; /* items */
};

enum { HASH_NO_ITEM = 0xffffffff };

/* The hash of a number, or of several numbers that the caller has put together. */
static inline u64 hash_u64(u64 number)
{
	return number * 0x9e3779b97f4a7c15ULL;
}

/*
 * The next item that may have @hash, or HASH_NO_ITEM. *@at counts the slots that were looked at: 0 for the first
 * call. The upper half of @hash chooses the slot, so its bits must be spread well: hash_u64(), hash_bytes().
 */
static inline u32 hash_index_next(const struct hash_index *t, u64 hash, u32 *at)
{
	u32 upper = (u32)(hash >> 32), mask = (u32)((1ULL << t->bits) - 1);

	if (!t->slots)
		return HASH_NO_ITEM;
	for (;;) {
		const struct hash_slot *s = &t->slots[((upper >> (32 - t->bits)) + *at) & mask];

		if (!s->item)
			return HASH_NO_ITEM;
		++*at;
		if (s->hash == upper)
			return s->item - 1;
	}
}

/* The size of the table in bytes with @nr items, for callers that keep a budget. */
size_t hash_index_bytes(const struct hash_index *t, size_t nr);

/* Make room for @nr items: adding up to there cannot fail. 0 or -ENOMEM: the table is as before. */
int hash_index_reserve(struct hash_index *t, size_t nr) __must_check;

/* Add the item of number @item, at most HASH_NO_ITEM - 1, with @hash. 0 or -ENOMEM: the table is as before. */
int hash_index_add(struct hash_index *t, u64 hash, u32 item) __must_check;

/* Remove @item, which was added with @hash. False if it is not in the table. */
bool hash_index_del(struct hash_index *t, u64 hash, u32 item);

/* Change the number of an item from @from to @to. The item was added with @hash. */
void hash_index_renumber(struct hash_index *t, u64 hash, u32 from, u32 to);

/* Make @out, which is empty, a copy. 0 or -ENOMEM. */
int hash_index_copy(struct hash_index *out, const struct hash_index *t) __must_check;

/*
 * hash_index_clear(): remove all items and keep the memory. hash_index_fini(): free the memory; the table is empty
 * and may be used again.
 */
void hash_index_clear(struct hash_index *t);
void hash_index_fini(struct hash_index *t);

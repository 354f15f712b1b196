/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A limit of memory that several tables share. Each table asks here before it grows. */
#pragma once

#include "user/lib/types.h"

struct hash_index;

struct budget {
	u64 used;  /* bytes */
	u64 limit; /* bytes; 0 = no limit */
};

/* Count @bytes more as used. False if that would pass the limit: then nothing has changed. */
static inline bool budget_take(struct budget *b, u64 bytes)
{
	if (b->limit && (bytes > b->limit || b->used > b->limit - bytes))
		return false;
	b->used += bytes;
	return true;
}

/* Count @bytes less as used. */
static inline void budget_give(struct budget *b, u64 bytes)
{
	b->used -= bytes;
}

/*
 * Like array_reserve() (user/lib/array.h), and counts the bytes in @b. Give them back by
 * budget_give(b, max * sizeof(*items)) when the array is freed. 0 or -ENOMEM: nothing has changed.
 */
#define budget_array(b, items, max, wanted)                                                                  \
	({                                                                                                   \
		size_t room_ = (max), wanted_ = (wanted);                                                    \
		int err_ = 0;                                                                                \
		if (wanted_ > room_) {                                                                       \
			err_ = budget_grow_array((b), &(items), &room_, wanted_, sizeof(*(items)));          \
			(max) = (__typeof__(max))room_;                                                      \
		}                                                                                            \
		err_;                                                                                        \
	})
int budget_grow_array(struct budget *b, void *items, size_t *max, size_t wanted, size_t size) __must_check;

/* Make *@out a copy of @bytes bytes at @from, counted in @b. NULL for 0 bytes. 0 or -ENOMEM. */
int budget_copy(struct budget *b, void *out, const void *from, u64 bytes) __must_check;

/* Like hash_index_reserve() (user/lib/hash_index.h), and counts the bytes in @b. 0 or -ENOMEM: nothing has changed. */
int budget_index(struct budget *b, struct hash_index *t, size_t nr) __must_check;

/* Like hash_index_copy(), and counts the bytes of @out in @b. 0 or -ENOMEM. */
int budget_copy_index(struct budget *b, struct hash_index *out, const struct hash_index *t) __must_check;

/* Like hash_index_fini(), and gives the bytes back to @b. */
void budget_free_index(struct budget *b, struct hash_index *t);

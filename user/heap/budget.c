/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Arrays and hash tables whose bytes count in a budget. */
#include "user/heap/budget.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "user/lib/array.h"
#include "user/lib/hash_index.h"

int budget_grow_array(struct budget *b, void *items, size_t *max, size_t wanted, size_t size)
{
	u64 more = (u64)(array_room(*max, wanted) - *max) * size;
	int err;

	if (!budget_take(b, more))
		return -ENOMEM;
	err = array_grow(items, max, wanted, size);
	if (err)
		budget_give(b, more);
	return err;
}

int budget_copy(struct budget *b, void *out, const void *from, u64 bytes)
{
	void *copy = NULL;

	if (bytes) {
		if (bytes > SIZE_MAX || !budget_take(b, bytes))
			return -ENOMEM;
		copy = malloc(bytes);
		if (!copy) {
			budget_give(b, bytes);
			return -ENOMEM;
		}
		memcpy(copy, from, bytes);
	}
	memcpy(out, &copy, sizeof(copy)); /* @out points to a pointer of any type */
	return 0;
}

/* While the table grows, its old slots and its new ones both exist and both count. */
int budget_index(struct budget *b, struct hash_index *t, size_t nr)
{
	u64 old = hash_index_bytes(t, 0), new = hash_index_bytes(t, nr);
	int err;

	if (new == old)
		return 0;
	if (!budget_take(b, new))
		return -ENOMEM;
	err = hash_index_reserve(t, nr);
	budget_give(b, err ? new : old);
	return err;
}

int budget_copy_index(struct budget *b, struct hash_index *out, const struct hash_index *t)
{
	u64 bytes = hash_index_bytes(t, 0);
	int err;

	if (!budget_take(b, bytes))
		return -ENOMEM;
	err = hash_index_copy(out, t);
	if (err)
		budget_give(b, bytes);
	return err;
}

void budget_free_index(struct budget *b, struct hash_index *t)
{
	budget_give(b, hash_index_bytes(t, 0));
	hash_index_fini(t);
}

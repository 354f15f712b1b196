/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A hash table of numbers: open addressing, linear probing, removal without tombstones. */
#include "user/lib/hash_index.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_BITS = 5, MAX_BITS = 31 };

/* At most two thirds of the slots are used. */
static u32 bits_for(const struct hash_index *t, size_t nr)
{
	u32 bits = t->bits ? t->bits : FIRST_BITS;

	while (bits <= MAX_BITS && nr > (1UL << bits) / 3 * 2)
		bits++;
	return bits;
}

size_t hash_index_bytes(const struct hash_index *t, size_t nr)
{
	return t->slots || nr ? sizeof(struct hash_slot) << bits_for(t, nr) : 0;
}

static u32 hash_index_home_of(const struct hash_index *t, u32 hash)
{
	return hash >> (32 - t->bits);
}

static void hash_index_put(struct hash_index *t, struct hash_slot item)
{
	u32 mask = (u32)((1ULL << t->bits) - 1);
	u32 i = hash_index_home_of(t, item.hash);

	while (t->slots[i].item)
		i = (i + 1) & mask;
	t->slots[i] = item;
}

int hash_index_reserve(struct hash_index *t, size_t nr)
{
	struct hash_index larger = { .bits = bits_for(t, nr), .nr = t->nr };

	if (t->slots && larger.bits == t->bits)
		return 0;
	if (larger.bits > MAX_BITS)
		return -ENOMEM;
	larger.slots = calloc(1UL << larger.bits, sizeof(*larger.slots));
	if (!larger.slots)
		return -ENOMEM;
	for (size_t i = 0; t->slots && i < 1UL << t->bits; i++)
		if (t->slots[i].item)
			hash_index_put(&larger, t->slots[i]);
	free(t->slots);
	*t = larger;
	return 0;
}

int hash_index_add(struct hash_index *t, u64 hash, u32 item)
{
	int err = hash_index_reserve(t, (size_t)t->nr + 1);

	if (err)
		return err;
	hash_index_put(t, (struct hash_slot){ .hash = (u32)(hash >> 32), .item = item + 1 });
	t->nr++;
	return 0;
}

static struct hash_slot *hash_index_slot_of(struct hash_index *t, u64 hash, u32 item)
{
	u32 mask = (u32)((1ULL << t->bits) - 1);

	for (u32 i = t->slots ? hash_index_home_of(t, (u32)(hash >> 32)) : 0; t->slots && t->slots[i].item;
	     i = (i + 1) & mask)
		if (t->slots[i].item == item + 1)
			return &t->slots[i];
	return NULL;
}

/* Move slots up into the hole, so that no search ends too early at it. */
static void close_hole(struct hash_index *t, u32 hole)
{
	u32 mask = (u32)((1ULL << t->bits) - 1);

	for (u32 i = (hole + 1) & mask; t->slots[i].item; i = (i + 1) & mask) {
		u32 home = hash_index_home_of(t, t->slots[i].hash);

		if (((i - home) & mask) < ((i - hole) & mask))
			continue;
		t->slots[hole] = t->slots[i];
		hole = i;
	}
	t->slots[hole] = (struct hash_slot){ 0 };
}

bool hash_index_del(struct hash_index *t, u64 hash, u32 item)
{
	struct hash_slot *slot = hash_index_slot_of(t, hash, item);

	if (!slot)
		return false;
	close_hole(t, (u32)(slot - t->slots));
	t->nr--;
	return true;
}

void hash_index_renumber(struct hash_index *t, u64 hash, u32 from, u32 to)
{
	struct hash_slot *slot = hash_index_slot_of(t, hash, from);

	if (slot)
		slot->item = to + 1;
}

int hash_index_copy(struct hash_index *out, const struct hash_index *t)
{
	*out = (struct hash_index){ 0 };
	if (!t->slots)
		return 0;
	out->slots = malloc(sizeof(*out->slots) << t->bits);
	if (!out->slots)
		return -ENOMEM;
	memcpy(out->slots, t->slots, sizeof(*out->slots) << t->bits);
	out->bits = t->bits;
	out->nr = t->nr;
	return 0;
}

void hash_index_clear(struct hash_index *t)
{
	if (t->slots)
		memset(t->slots, 0, sizeof(*t->slots) << t->bits);
	t->nr = 0;
}

void hash_index_fini(struct hash_index *t)
{
	free(t->slots);
	*t = (struct hash_index){ 0 };
}

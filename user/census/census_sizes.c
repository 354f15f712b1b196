/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sums of live blocks by size. */
#include "user/census/census_sizes.h"

#include <errno.h>
#include <stdlib.h>

#include "user/lib/array.h"
#include "user/lib/hash_index.h"

struct size_sums {
	struct census_size *sizes; /* owned */
	size_t nr, max;
	struct hash_index index; /* owned; by size */
};

/* The entry of @size, NULL without memory. */
static struct census_size *census_sizes_entry_of(struct size_sums *s, u64 size)
{
	u64 hash = hash_u64(size);
	u32 item, at = 0;

	while ((item = hash_index_next(&s->index, hash, &at)) != HASH_NO_ITEM)
		if (s->sizes[item].size == size)
			return &s->sizes[item];
	if (array_reserve(s->sizes, s->max, s->nr + 1) || hash_index_add(&s->index, hash, (u32)s->nr))
		return NULL;
	s->sizes[s->nr] = (struct census_size){ .size = size };
	return &s->sizes[s->nr++];
}

static int add_live(struct size_sums *s, const struct census *c)
{
	for (size_t i = 0; i < c->blocks.nr; i++) {
		const struct census_block *block = &c->blocks.blocks[i];
		struct census_size *entry;

		if (block->state != CENSUS_LIVE)
			continue;
		entry = census_sizes_entry_of(s, block->size);
		if (!entry)
			return -ENOMEM;
		entry->live.blocks++;
		entry->live.bytes += block->size;
	}
	return 0;
}

static int census_sizes_add_lost(void *ctx, const struct scan_block_info *info)
{
	struct census_size *entry;

	if (info->verdict != SCAN_DEFINITE && info->verdict != SCAN_INDIRECT)
		return 0;
	entry = census_sizes_entry_of(ctx, info->size);
	if (!entry)
		return -ENOMEM;
	entry->lost.blocks++;
	entry->lost.bytes += info->size;
	return 0;
}

static int census_sizes_by_bytes(const void *a, const void *b)
{
	const struct census_size *x = a, *y = b;

	if (x->live.bytes != y->live.bytes)
		return x->live.bytes < y->live.bytes ? 1 : -1;
	return (x->size < y->size) - (x->size > y->size);
}

int census_sizes(struct census_size **out, size_t *nr, const struct census *c)
{
	struct size_sums sums = { 0 };
	int err = add_live(&sums, c);

	if (!err && c->scan)
		err = scan_for_each(c->scan, census_sizes_add_lost, &sums);
	hash_index_fini(&sums.index);
	if (err) {
		free(sums.sizes);
		return err;
	}
	if (sums.nr)
		qsort(sums.sizes, sums.nr, sizeof(*sums.sizes), census_sizes_by_bytes);
	*out = sums.sizes;
	*nr = sums.nr;
	return 0;
}

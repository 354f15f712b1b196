/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Memory of pools that begins where one of the pool's blocks does: two live blocks have one address. */
#include "user/heap/heap_private.h"

static bool is_pool(const struct heap *h, u16 fn)
{
	return alloc_fn(h->fns, fn)->family == FAMILY_POOL;
}

/* All but the key, which belongs to the table and the address. */
static void copy_block(struct block *to, const struct block *from)
{
	u64 key = to->key;

	*to = *from;
	to->key = key;
}

bool pool_cover(struct heap *h, taddr_t addr, const struct block *b, u16 fn)
{
	struct block *under;

	if (!is_pool(h, fn) || is_pool(h, h->rows.rows[b->row].fn) ||
	    block_table_put(&h->covered, addr, &under) < 0)
		return false;
	copy_block(under, b);
	return true;
}

struct block *pool_under(const struct heap *h, taddr_t addr, u16 fn)
{
	return !is_pool(h, fn) ? block_table_find(&h->covered, addr) : NULL;
}

bool pool_uncover(struct heap *h, taddr_t addr, struct block *b)
{
	struct block *under = block_table_find(&h->covered, addr);

	if (!under)
		return false;
	copy_block(b, under);
	block_table_del(&h->covered, under);
	return true;
}

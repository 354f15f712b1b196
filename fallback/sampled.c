/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The set of sampled blocks of a process. */
#include "fallback/sampled.h"

#include <stdlib.h>
#include <string.h>

#include "user/lib/array.h"

enum { MOST_SAMPLED = 1 << 26 };

static u32 sampled_find(const struct sampled *s, u64 addr)
{
	u32 item, at = 0;

	while ((item = hash_index_next(&s->index, hash_u64(addr), &at)) != HASH_NO_ITEM)
		if (s->addrs[item] == addr)
			break;
	return item;
}

bool sampled_add(struct sampled *s, u64 addr)
{
	if (sampled_find(s, addr) != HASH_NO_ITEM)
		return true;
	if (s->nr == MOST_SAMPLED || array_reserve(s->addrs, s->max, s->nr + 1) ||
	    hash_index_add(&s->index, hash_u64(addr), (u32)s->nr))
		return false;
	s->addrs[s->nr++] = addr;
	return true;
}

bool sampled_take(struct sampled *s, u64 addr)
{
	u32 item = sampled_find(s, addr);
	u64 last;

	if (item == HASH_NO_ITEM)
		return false;
	hash_index_del(&s->index, hash_u64(addr), item);
	last = s->addrs[--s->nr];
	if (item < s->nr) {
		hash_index_renumber(&s->index, hash_u64(last), (u32)s->nr, item);
		s->addrs[item] = last;
	}
	return true;
}

int sampled_copy(struct sampled *out, const struct sampled *s)
{
	int err = s->nr ? array_reserve(out->addrs, out->max, s->nr) : 0;

	if (!err)
		err = hash_index_copy(&out->index, &s->index);
	if (err || !s->nr)
		return err;
	memcpy(out->addrs, s->addrs, s->nr * sizeof(*s->addrs));
	out->nr = s->nr;
	return 0;
}

void sampled_fini(struct sampled *s)
{
	free(s->addrs);
	hash_index_fini(&s->index);
	memset(s, 0, sizeof(*s));
}

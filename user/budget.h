/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How much memory the books may take: each table asks here before it grows, so that a limit holds for all. */
#pragma once

#include "user/lib/types.h"

struct budget {
	u64 used;  /* bytes */
	u64 limit; /* bytes; 0 = none */
};

/* False if @bytes more would pass the limit: then nothing is taken. */
static inline bool budget_take(struct budget *b, u64 bytes)
{
	if (b->limit && (bytes > b->limit || b->used > b->limit - bytes))
		return false;
	b->used += bytes;
	return true;
}

static inline void budget_give(struct budget *b, u64 bytes)
{
	b->used -= bytes;
}

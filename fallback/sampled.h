/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The live blocks of a process that were sampled: only their releases are recorded. The agent has none. */
#pragma once

#include "user/lib/hash_index.h"

/* All zero: none. */
struct sampled {
	u64 *addrs; /* owned */
	size_t nr, max;
	struct hash_index index; /* numbers in addrs */
};

/* Add the block at @addr, which may be there. False: no memory. */
bool sampled_add(struct sampled *s, u64 addr);

/* Take the block at @addr out. False: it is not there. */
bool sampled_take(struct sampled *s, u64 addr);

/* Make @out, which has none, a copy. 0 or -ENOMEM. */
int sampled_copy(struct sampled *out, const struct sampled *s) __must_check;

void sampled_fini(struct sampled *s);

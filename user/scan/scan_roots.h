/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Pointers from roots to blocks, in few bytes each: written once, read in that order. For user/scan/scan*.c only. */
#pragma once

#include "user/scan/scan_edges.h"

/* A pointer from a root to a block. */
struct root_ref {
	u64 where; /* WHERE() of user/scan/scan_state.h */
	u32 block;
	u32 offset; /* bytes from the start of the block, saturated; ROOT_END, or ROOT_TAIL */
};

/* A pointer to the start of the block that may mean the end of the block before. root_next() makes 0 or 1 of it. */
#define ROOT_END (UINT32_MAX - 1)
/* One to the end of the block, where no block begins. root_next() makes 0 of it, or leaves it out. */
#define ROOT_TAIL (UINT32_MAX - 2)

/*
 * For each: (zigzag of where - the where before) << 2, 2 if block has four bytes and not three, 1 if the offset is not
 * that of the root before, or 0 for the first one; block; and 2 + this offset, 0 for ROOT_END. In the agent 1 is set if
 * the offset is not 0, and the last number is the offset.
 */
struct root_store {
	u8 *bytes; /* owned */
	u64 nr_bytes, capacity;
	size_t nr;
	const struct end_bits *ends; /* borrowed; NULL until they are decided */
	u64 last_where;
	u32 last_offset;
};

void roots_fini(struct root_store *r);
/* 0 or -ENOMEM. */
int roots_add(struct root_store *r, const struct root_ref *ref) __must_check;
/* No more come: give back the room for them. */
void roots_finish(struct root_store *r);

/* Go through all. All zero but the store: before the first. */
struct root_iter {
	const struct root_store *roots;
	u64 at;
	u64 where;
	u32 last_offset;
	bool may_be_end; /* the last one */
};
bool root_next(struct root_iter *it, struct root_ref *out);

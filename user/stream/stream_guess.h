/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where an allocator puts the next block, as both ends of a stream guess it: where the block of about this size lay
 * which was freed last, as with caches of free blocks; without one, behind the last block.
 */
#pragma once

#include "bpf/event.h"

enum { GUESS_CLASSES = 128, GUESS_DEPTH = 16, GUESS_BLOCKS = 1 << 14 };

struct stream_guess {
	struct {
		u64 addr;
		u32 class;
	} blocks[GUESS_BLOCKS];		       /* some live ones, by hash of their addresses */
	u64 freed[GUESS_CLASSES][GUESS_DEPTH]; /* addresses; in rings */
	u32 first[GUESS_CLASSES], nr[GUESS_CLASSES];
	u64 next; /* behind the last block */
};

/* All bytes 0 is a guess that knows nothing. */

/* The address that a block of @size bytes will have. */
u64 stream_guess_addr(const struct stream_guess *g, u64 size);

/* @ev has happened. */
void stream_guess_learn(struct stream_guess *g, const struct heap_event *ev);

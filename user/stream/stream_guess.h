/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where an allocator puts the next block, as both ends of a stream guess it: where the block of about this size lay
 * which was freed last, as with caches of free blocks; without one, behind the last block.
 */
#pragma once

#include "bpf/event.h"

enum {
	GUESS_CLASSES = 128,
	GUESS_DEPTH = 16,
	GUESS_BITS = 14,
	GUESS_LINK_BITS = 11, /* on connections, for the sake of small boards */
	GUESS_BLOCKS = 1 << (IS_AGENT ? GUESS_LINK_BITS : GUESS_BITS),
};

struct stream_guess {
	u32 bits;			       /* binary logarithm of the blocks in use */
	u64 blocks[GUESS_BLOCKS];	       /* addresses of some live ones, by their hash */
	u8 classes[GUESS_BLOCKS];	       /* of these */
	u64 freed[GUESS_CLASSES][GUESS_DEPTH]; /* addresses; in rings */
	u32 first[GUESS_CLASSES], nr[GUESS_CLASSES];
	u64 next; /* behind the last block */
};

/* Begin with a guess that knows nothing. @bits: GUESS_BITS or GUESS_LINK_BITS. */
void stream_guess_begin(struct stream_guess *g, u32 bits);

/* The address that a block of @size bytes will have. */
u64 stream_guess_addr(const struct stream_guess *g, u64 size);

/* @ev has happened. */
void stream_guess_learn(struct stream_guess *g, const struct heap_event *ev);

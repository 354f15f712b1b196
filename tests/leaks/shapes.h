/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shapes of blocks that random programs build. The verdicts are known before the blocks are made. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum verdict { DEFINITE, INDIRECT, POSSIBLE, REACHABLE, NR_VERDICTS };

/* How the head of a shape is held in the end. */
enum fate {
	FATE_KEPT,   /* by a pointer to its start, or to where C++ points */
	FATE_MIDDLE, /* only by a pointer into its middle */
	FATE_LOST,
};

/* xorshift. Each thread has its own, so that the result of a seed does not depend on the order of threads. */
struct rng {
	uint64_t state;
};

static inline uint64_t rng_next(struct rng *r)
{
	r->state ^= r->state << 13;
	r->state ^= r->state >> 7;
	r->state ^= r->state << 17;
	return r->state;
}

/* A number from 0 to @n - 1. */
static inline size_t rng_below(struct rng *r, size_t n)
{
	return (size_t)(rng_next(r) % n);
}

static inline bool rng_chance(struct rng *r, unsigned percent)
{
	return rng_below(r, 100) < percent;
}

/*
 * Build a shape of random kind, with at most about @blocks blocks. Returns the pointer that a root must hold; nothing
 * else points to the shape. The head is allocated by a function SHAPE_definite, _possible or _reachable, the rest by
 * SHAPE_indirect, _possible or _reachable.
 */
void *shape_build(struct rng *r, enum fate fate, size_t blocks);

/* Number of blocks that this thread has made. */
size_t shapes_made_here(void);

/* Do not print the blocks that were made so far. No other thread builds meanwhile. */
void shapes_forget(void);

/* Print "expect VERDICT BLOCKS BYTES FUNCTION" for each function that made blocks. */
void shapes_tell(void);

/* List each block from now on, for shapes_list_tell(). False if there is no memory for the list. */
bool shapes_list_begin(void);

/* Print "block ADDRESS USABLE_BYTES VERDICT" for each block of the list. */
void shapes_list_tell(void);

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What random programs build in their heaps: shapes of blocks whose verdicts are known before they are made. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum verdict { DEFINITE, INDIRECT, POSSIBLE, REACHABLE, NR_VERDICTS };

/* How the head of a shape is held in the end. */
enum fate {
	FATE_KEPT,   /* by a pointer to its start, or to where C++ points */
	FATE_MIDDLE, /* by a pointer into its middle only */
	FATE_LOST,
};

/* xorshift; each thread has its own, so that what a seed builds does not depend on who runs first. */
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

/* 0 to @n - 1. */
static inline size_t rng_below(struct rng *r, size_t n)
{
	return (size_t)(rng_next(r) % n);
}

static inline bool rng_chance(struct rng *r, unsigned percent)
{
	return rng_below(r, 100) < percent;
}

/*
 * Build one of random kind with about @blocks blocks at most. Returns the pointer that a root has to hold; nothing
 * else leads to it. The head's function is SHAPE_definite, _possible or _reachable, that of the rest SHAPE_indirect,
 * _possible or _reachable.
 */
void *shape_build(struct rng *r, enum fate fate, size_t blocks);

/* Blocks that this thread has made. */
size_t shapes_made_here(void);

/* What was made so far is not told. No other thread builds. */
void shapes_forget(void);

/* Print "expect VERDICT BLOCKS BYTES FUNCTION" for each function that made some. */
void shapes_tell(void);

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Roles of blocks in the shapes of tests/verdicts/: who allocates a block says what its verdict must be. At the end the
 * program prints a line "expect VERDICT BLOCKS BYTES ROLE" for each role.
 */
#pragma once

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A function that keeps its name and its frame. */
#define FN __attribute__((noinline, noclone, optimize("no-optimize-sibling-calls")))
/* The compiler must not see through the allocation. */
#define keep(p) __asm__ volatile("" : "+r"(p) : : "memory")

void *leader(size_t size); /* definite: lost, and no other lost block leads to it */
void *behind(size_t size); /* indirect: lost with its leader */
void *
maybe(size_t size); /* possible: only a pointer into its middle is left, or into that of a block before it */
void *held(size_t size);	/* reachable */
void count_leader(size_t size); /* these two: the caller has its block otherwise */
void count_behind(size_t size);

/* Overwrite what earlier calls have left on the stack. */
void scrub(void);

struct shape {
	const char *name;
	void (*build)(void);
};

/* Build the shape that the first argument names, or list all names. Returns the exit status. */
int build_shape(const struct shape *shapes, size_t nr, int argc, char **argv);

#ifdef __cplusplus
}
#endif

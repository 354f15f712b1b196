/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Makes N blocks, nearly each of another call stack, and frees them at once: new_stacks [N]. With "kept" it keeps
 * them, with "lost" it loses them.
 */
#include "tests/targets/truth.h"

#include <stdint.h>

enum { DEPTH = 12, NR_WAYS = 8, BYTES = 40 };

static void *volatile held[3], **all; /* volatile: nobody reads them */
static volatile long nr;
static volatile int after; /* a call must not be the last thing that a function does */
static int is_kept, is_lost;

FN static void make(void)
{
	void *p = malloc(BYTES);

	keep(p);
	if (is_kept)
		all[nr] = p;
	else if (!is_lost)
		free(p);
	nr++;
}

#define WAY(n)                                                                                               \
	FN static void way##n(int depth, uint64_t ways)                                                      \
	{                                                                                                    \
		if (depth)                                                                                   \
			way_of[ways % NR_WAYS](depth - 1, ways / NR_WAYS);                                   \
		else                                                                                         \
			make();                                                                              \
		after += n;                                                                                  \
	}

static void (*const way_of[NR_WAYS])(int depth, uint64_t ways);
WAY(0)
WAY(1)
WAY(2)
WAY(3)
WAY(4)
WAY(5)
WAY(6)
WAY(7)
static void (*const way_of[NR_WAYS])(int depth, uint64_t ways) = { way0, way1, way2, way3,
								   way4, way5, way6, way7 };

FN static void wander(long count)
{
	uint64_t random = 88172645463325252ULL;

	for (long i = 0; i < count; i++) {
		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		way_of[random % NR_WAYS](DEPTH, random / NR_WAYS);
	}
}

FN static void hold(void)
{
	for (int i = 0; i < 3; i++)
		held[i] = malloc(100);
}

FN static void lose(void)
{
	for (int i = 0; i < 2; i++) {
		void *p = malloc(64);

		keep(p);
		p = NULL;
		keep(p);
	}
}

int main(int argc, char **argv)
{
	long count = arg_or(argc, argv, 1, 20000);

	truth_begin();
	is_kept = argc > 2 && !strcmp(argv[2], "kept");
	is_lost = argc > 2 && !strcmp(argv[2], "lost");
	hold();
	lose();
	all = is_kept ? malloc((size_t)count * sizeof(*all)) : NULL;
	wander(count);
	expect("calls malloc %ld", count + 5 + is_kept);
	expect("calls free %ld", is_kept || is_lost ? 0 : count);
	expect("live 3 300 hold");
	expect("live 2 128 lose");
	printf("allocated %ld\n", count * BYTES + 428 + (is_kept ? count * (long)sizeof(*all) : 0));
	return 0;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* sampled ROUNDS: blocks by each function in known numbers, and a leak of one block in 20 rounds. */
#include <stdio.h>
#include <stdlib.h>

enum { KEPT = 64 };

static void *kept[KEPT];

__attribute__((noinline)) static void *remember(void)
{
	return malloc(2000);
}

__attribute__((noinline)) static void traffic(long i)
{
	free(kept[i % KEPT]);
	kept[i % KEPT] = malloc(1000);
}

/* realloc may go on in malloc. */
__attribute__((noinline)) static void other_functions(void)
{
	void *grown = realloc(realloc(NULL, 200), 400), *aligned;

	free(calloc(100, 8));
	free(grown);
	if (!posix_memalign(&aligned, 64, 1000))
		free(aligned);
}

int main(int argc, char **argv)
{
	long rounds = argc > 1 ? atol(argv[1]) : 1;
	void *volatile lost;

	for (long i = 0; i < rounds; i++) {
		traffic(i);
		other_functions();
		if (i % 20 == 0)
			lost = remember();
	}
	lost = NULL;
	printf("%ld\n", rounds);
	return lost != NULL;
}

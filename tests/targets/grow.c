/* SPDX-License-Identifier: GPL-2.0-or-later */
/* grow MS KEEPS: for so long allocates and frees blocks; keeps one every ms if KEEPS, which is what grows. */
#include <time.h>

#include "tests/targets/truth.h"

enum { NR_HELD = 256 };

void *kept;
static void *held[NR_HELD];

FN static void keep_one(void)
{
	void **p = malloc(1000);

	*p = kept;
	kept = p;
}

int main(int argc, char **argv)
{
	const struct timespec ms = { .tv_nsec = 1000000 };
	long nr = arg_or(argc, argv, 1, 1000), keeps = arg_or(argc, argv, 2, 1);
	struct timespec now, start;

	for (int i = 0; i < NR_HELD; i++)
		held[i] = malloc(64);
	clock_gettime(CLOCK_MONOTONIC, &start);
	for (unsigned i = 0;; i++) {
		void **slot = &held[i % NR_HELD];
		void *extra = malloc(5000);

		clock_gettime(CLOCK_MONOTONIC, &now);
		if ((now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1000000 > nr)
			_exit(0);
		keep(extra);
		free(extra);
		free(*slot);
		*slot = malloc(64);
		if (keeps)
			keep_one();
		nanosleep(&ms, NULL);
	}
}

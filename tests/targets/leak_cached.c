/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Loses blocks of several sizes, and holds as many: "leak_cached [N]". The caches of allocators keep old pointers to
 * the blocks that they gave out last.
 */
#include <pthread.h>

#include "tests/targets/truth.h"

enum { MAX_HELD = 4096 };

static const size_t sizes[] = { 16, 100, 1000, 5000, 40000, 300000 };
static void *held[MAX_HELD];

FN static void *lost_block(size_t size)
{
	return malloc(size);
}

FN static void *lost_in_thread(size_t size)
{
	return malloc(size);
}

FN static void *held_block(size_t size)
{
	return malloc(size);
}

FN static void lose(size_t size, long nr)
{
	for (long i = 0; i < nr; i++) {
		void *p = lost_block(size);

		keep(p);
	}
}

FN static void *thread_main(void *arg)
{
	for (long i = 0; i < (long)arg; i++) {
		void *p = lost_in_thread(sizes[1]);

		keep(p);
	}
	return NULL;
}

/* The last bytes of a block may be in no page of their own, so held blocks lie between lost ones. */
FN static long work(long nr)
{
	long total = 0, nr_held = 0;

	for (size_t k = 0; k < sizeof(sizes) / sizeof(*sizes); k++) {
		long n = sizes[k] > 10000 && nr > 20 ? 20 : nr;

		lose(sizes[k], n);
		total += n * (long)sizes[k];
		for (long i = 0; i < 5; i++)
			held[nr_held++] = held_block(sizes[k]);
	}
	return total;
}

int main(int argc, char **argv)
{
	long nr = arg_or(argc, argv, 1, 100), blocks = 0, bytes;
	pthread_t thread;

	truth_begin();
	bytes = work(nr);
	pthread_create(&thread, NULL, thread_main, (void *)nr);
	pthread_join(thread, NULL);
	for (size_t k = 0; k < sizeof(sizes) / sizeof(*sizes); k++)
		blocks += sizes[k] > 10000 && nr > 20 ? 20 : nr;
	expect("definite %ld %ld lost_block", blocks, bytes);
	expect("definite %ld %ld lost_in_thread", nr, nr * (long)sizes[1]);
	expect("reachable 30 %d held_block", 5 * (16 + 100 + 1000 + 5000 + 40000 + 300000));
	fflush(stdout);
	scrub();
	return held[0] == NULL;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* cancel [ROUNDS]: threads that are cancelled, that call pthread_exit, or that simply are short. */
#include "tests/targets/truth.h"

#include <pthread.h>

enum { NR_AT_ONCE = 10 };

FN static void *take_block(void)
{
	void *p = malloc(64);

	keep(p);
	return p;
}

/* Waits to be cancelled with a block in its hands; the cleanup frees it. */
static void *cancelled(void *arg)
{
	void *p = take_block();

	(void)arg;
	pthread_cleanup_push(free, p);
	for (;;)
		pause();
	pthread_cleanup_pop(1);
	return NULL;
}

static void *exiting(void *arg)
{
	void *p = take_block();

	pthread_cleanup_push(free, p);
	pthread_exit(arg);
	pthread_cleanup_pop(1);
}

/* Loses its block. */
static void *short_one(void *arg)
{
	free(take_block());
	take_block();
	return arg;
}

static void run(void *(*body)(void *), long rounds, int want_cancel)
{
	pthread_t threads[NR_AT_ONCE];

	for (long r = 0; r < rounds; r++) {
		for (int i = 0; i < NR_AT_ONCE; i++)
			if (pthread_create(&threads[i], NULL, body, NULL))
				abort();
		for (int i = 0; i < NR_AT_ONCE; i++) {
			if (want_cancel)
				pthread_cancel(threads[i]);
			pthread_join(threads[i], NULL);
		}
	}
}

int main(int argc, char **argv)
{
	long rounds = arg_or(argc, argv, 1, 100);
	long threads = rounds * NR_AT_ONCE;

	truth_begin();
	run(cancelled, rounds, 1);
	run(exiting, rounds, 0);
	run(short_one, rounds, 0);
	expect("allocs %ld %ld take_block", threads * 4, threads * 4 * 64);
	/* Only pause() is a cancellation point: all have pushed their cleanup. */
	expect("live %ld %ld take_block", threads, threads * 64);
	expect("failed 0");
	expect("unknown 0");
	return 0;
}

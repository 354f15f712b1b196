/* SPDX-License-Identifier: GPL-2.0-or-later */
/* spin [PER_MS [THREADS]]: allocates and frees at a steady rate (0 = full speed) until SIGTERM. */
#include "tests/targets/truth.h"

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <time.h>

enum { NR_HELD = 64, MAX_THREADS = 256 };

static volatile sig_atomic_t is_over;
static long per_ms;
static uint64_t nr_malloc, nr_free;

static void on_term(int sig)
{
	(void)sig;
	is_over = 1;
}

FN static void *spin_allocates(size_t size)
{
	void *p = malloc(size);

	keep(p);
	return p;
}

static void *spin(void *arg)
{
	const struct timespec ms = { .tv_nsec = 1000000 };
	void *held[NR_HELD] = { NULL };
	uint64_t n = 0, frees = 0;

	while (!is_over) {
		void **slot = &held[n % NR_HELD];

		frees += *slot != NULL;
		free(*slot);
		*slot = spin_allocates(16 + n % 500);
		memset(*slot, 0x5a, 16);
		n++;
		if (per_ms && n % per_ms == 0)
			nanosleep(&ms, NULL);
	}
	__atomic_fetch_add(&nr_malloc, n, __ATOMIC_RELAXED);
	__atomic_fetch_add(&nr_free, frees, __ATOMIC_RELAXED);
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t threads[MAX_THREADS];
	struct sigaction sa = { .sa_handler = on_term };
	long nr_threads;

	truth_begin();
	per_ms = arg_or(argc, argv, 1, 10);
	nr_threads = arg_or(argc, argv, 2, 1);
	if (nr_threads < 1 || nr_threads > MAX_THREADS)
		return 2;
	sigaction(SIGTERM, &sa, NULL);
	printf("ready\n");
	fflush(stdout);
	for (long i = 1; i < nr_threads; i++)
		if (pthread_create(&threads[i], NULL, spin, NULL))
			return 1;
	spin(NULL);
	for (long i = 1; i < nr_threads; i++)
		pthread_join(threads[i], NULL);
	printf("total malloc %llu free %llu\n", (unsigned long long)nr_malloc, (unsigned long long)nr_free);
	return 0;
}

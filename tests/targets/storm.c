/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * storm SHORT ALIVE NEW: SHORT threads that allocate and end at once, then ALIVE ones that are there together, then NEW
 * ones that follow each other, each on a stack of its own.
 */
#include <pthread.h>
#include <sys/mman.h>

#include "tests/targets/truth.h"

enum { AT_ONCE = 16, PER_THREAD = 5 };

static pthread_barrier_t all_there, may_end, have_ended;

FN static void *short_thread(void *arg)
{
	free(arg);
	for (int i = 0; i < PER_THREAD; i++) {
		void *p = malloc(16);

		keep(p);
		free(p);
	}
	return malloc(33);
}

FN static void *long_thread(void *arg)
{
	void *p = malloc(100);

	keep(p);
	pthread_barrier_wait(&all_there);
	pthread_barrier_wait(&may_end);
	free(p);
	pthread_barrier_wait(&have_ended);
	return arg;
}

FN static void *for_thread(void)
{
	return malloc(9);
}

static void make_short(long nr, const pthread_attr_t *attr)
{
	while (nr > 0) {
		pthread_t threads[AT_ONCE];
		int made = 0;

		for (; made < AT_ONCE && nr > 0; made++, nr--)
			if (pthread_create(&threads[made], attr, short_thread, for_thread()))
				exit(1);
		while (made) {
			void *result;

			pthread_join(threads[--made], &result);
			free(result);
		}
	}
}

static void make_alive(long nr, const pthread_attr_t *attr)
{
	pthread_t thread;

	pthread_barrier_init(&all_there, NULL, nr + 1);
	pthread_barrier_init(&may_end, NULL, nr + 1);
	pthread_barrier_init(&have_ended, NULL, nr + 1);
	for (long i = 0; i < nr; i++)
		if (pthread_create(&thread, attr, long_thread, NULL) || pthread_detach(thread))
			exit(1);
	pthread_barrier_wait(&all_there);
	pthread_barrier_wait(&may_end);
	pthread_barrier_wait(&have_ended);
}

static void make_new(long nr, pthread_attr_t *attr)
{
	pthread_t thread;

	for (long i = 0; i < nr; i++) {
		void *stack = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (stack == MAP_FAILED || pthread_attr_setstack(attr, stack, 65536) ||
		    pthread_create(&thread, attr, short_thread, malloc(9)) || pthread_join(thread, NULL))
			exit(1);
	}
}

int main(int argc, char **argv)
{
	long nr_short = argc > 1 ? atol(argv[1]) : 0, nr_alive = argc > 2 ? atol(argv[2]) : 0;
	pthread_attr_t attr;

	truth_begin();
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 65536);
	make_short(nr_short, &attr);
	if (nr_alive)
		make_alive(nr_alive, &attr);
	make_new(arg_or(argc, argv, 3, 0), &attr);
	expect("allocs %ld %ld short_thread", nr_short * (PER_THREAD + 1), nr_short * (PER_THREAD * 16 + 33));
	expect("live 0 0 short_thread");
	expect("allocs %ld %ld for_thread", nr_short, nr_short * 9);
	expect("calls free %ld", nr_short * (PER_THREAD + 2) + nr_alive);
	return 0;
}

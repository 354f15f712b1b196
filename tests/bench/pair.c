/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The program that tracers are measured on: malloc/free pairs at a call depth. Prints the CPU time of one pair; with -e
 * the elapsed time of the whole run by all pairs, so that waiting counts; -p: the first in ps.
 * With -r it prints the elapsed time of a pair in thousandths of that of a fixed piece of work, which is measured next
 * to each batch of pairs, and the least time of this work in ns. A CPU that others share changes its speed by a factor
 * of two for seconds: both times change then, and their ratio says what the pair costs.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { NR_BATCHES = 20, MAX_RUNNERS = 64, BLOCK_BYTES = 100, WORK_SHARE = 16 };

static long nr_pairs = 100000; /* per thread */
static int nr_threads = 1;
static int call_depth = 20;
static int has_two_paths;
static int wants_elapsed, wants_ratio, wants_ps;

/* Neither inlined nor left by a jump: each level is a frame. */
#define FRAME	     __attribute__((noinline, noclone))
#define KEEP_FRAME() __asm__ volatile("" ::: "memory")

static FRAME void pair(void)
{
	void *block = malloc(BLOCK_BYTES);

	__asm__ volatile("" : "+r"(block)::"memory");
	free(block);
	KEEP_FRAME();
}

static FRAME void descend(int levels)
{
	if (levels <= 1)
		pair();
	else
		descend(levels - 1);
	KEEP_FRAME();
}

/* The other path: frames of another size, so that nothing of it lies where the first had it. */
static FRAME void descend_wide(int levels)
{
	char room[48];

	__asm__ volatile("" ::"r"(room) : "memory");
	if (levels <= 1)
		pair();
	else
		descend_wide(levels - 1);
	KEEP_FRAME();
}

/* The fixed work: as many calls, and some memory instead of a block. */
static FRAME void touch(void)
{
	static volatile long words[64];

	for (int i = 0; i < 16; i++)
		words[i * 4] += i;
	KEEP_FRAME();
}

static FRAME void descend_to_work(int levels)
{
	if (levels <= 1)
		touch();
	else
		descend_to_work(levels - 1);
	KEEP_FRAME();
}

static double clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

static int compare(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* The median of the batches: a batch that others disturb does not count. */
static void *run(void *result)
{
	double ns[NR_BATCHES];
	long size = nr_pairs / NR_BATCHES;
	int levels = call_depth - 2; /* pair() is one, this function another */

	for (int batch = 0; batch < NR_BATCHES; batch++) {
		double start = clock_ns(CLOCK_THREAD_CPUTIME_ID);

		for (long i = 0; i < size; i++) {
			if (has_two_paths && i & 1)
				descend_wide(levels);
			else
				descend(levels);
		}
		ns[batch] = (clock_ns(CLOCK_THREAD_CPUTIME_ID) - start) / (double)size;
	}
	qsort(ns, NR_BATCHES, sizeof(*ns), compare);
	*(double *)result = ns[NR_BATCHES / 2];
	return NULL;
}

/* One thread's pairs beside the fixed work. */
static void run_beside_work(double *thousandths, double *least_ns)
{
	double ratios[NR_BATCHES];
	long size = nr_pairs / NR_BATCHES;
	int levels = call_depth - 2;

	*least_ns = 1e9;
	for (int batch = 0; batch < NR_BATCHES; batch++) {
		double begin = clock_ns(CLOCK_MONOTONIC), middle, work;

		for (long i = 0; i < size / WORK_SHARE; i++)
			descend_to_work(levels);
		middle = clock_ns(CLOCK_MONOTONIC);
		for (long i = 0; i < size; i++)
			descend(levels);
		work = (middle - begin) / (double)(size / WORK_SHARE);
		ratios[batch] = 1000 * (clock_ns(CLOCK_MONOTONIC) - middle) / (double)size / work;
		*least_ns = work < *least_ns ? work : *least_ns;
	}
	qsort(ratios, NR_BATCHES, sizeof(*ratios), compare);
	*thousandths = ratios[NR_BATCHES / 2];
}

/* Sum of the threads' medians, divided by their number. */
static int run_threads(double *ns)
{
	pthread_t threads[MAX_RUNNERS];
	double results[MAX_RUNNERS];
	int started = 0;

	while (started < nr_threads && !pthread_create(&threads[started], NULL, run, &results[started]))
		started++;
	*ns = 0;
	for (int i = 0; i < started; i++) {
		pthread_join(threads[i], NULL);
		*ns += results[i] / started;
	}
	return started == nr_threads ? 0 : -1;
}

/* pair [-n PAIRS] [-t THREADS] [-c CALL-DEPTH] [-2] [-e | -p | -r] */
int main(int argc, char **argv)
{
	double ns, begin, thousandths;
	int option;

	while ((option = getopt(argc, argv, "n:t:c:2epr")) != -1) {
		if (option == 'n')
			nr_pairs = atol(optarg);
		else if (option == 't')
			nr_threads = atoi(optarg);
		else if (option == 'c')
			call_depth = atoi(optarg);
		else if (option == '2')
			has_two_paths = 1;
		else if (option == 'e')
			wants_elapsed = 1;
		else if (option == 'p')
			wants_ps = 1;
		else if (option == 'r')
			wants_ratio = 1;
		else
			return 2;
	}
	if (nr_pairs < NR_BATCHES * WORK_SHARE || nr_threads < 1 || nr_threads > MAX_RUNNERS ||
	    call_depth < 3)
		return 2;
	if (wants_ratio) {
		run_beside_work(&thousandths, &ns);
		printf("%.0f %.0f\n", thousandths, ns);
		return 0;
	}
	begin = clock_ns(CLOCK_MONOTONIC);
	if (nr_threads == 1)
		run(&ns);
	else if (run_threads(&ns))
		return 1;
	if (wants_elapsed)
		ns = (clock_ns(CLOCK_MONOTONIC) - begin) / (double)(nr_pairs * nr_threads);
	printf("%.0f\n", wants_ps ? ns * 1000 : ns);
	return 0;
}

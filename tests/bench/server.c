/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A server, for the cost of an attach as typed: server SECONDS HZ has two threads, each with HZ requests a second of 40
 * allocations. Prints CPU time per request and the 99th percentile of the times from a request to its answer, in ns.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { NR_THREADS = 2, NR_ALLOCATIONS = 40, WORDS = 3000, SECOND_NS = 1000000000 };

struct worker {
	pthread_t thread;
	uint64_t *took; /* of each request */
	size_t nr, max;
	uint64_t period_ns;
	unsigned sum;
};

static uint64_t now_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * SECOND_NS + (uint64_t)t.tv_nsec;
}

static void answer(struct worker *w)
{
	char *parts[NR_ALLOCATIONS];

	for (size_t i = 0; i < NR_ALLOCATIONS; i++) {
		parts[i] = malloc(16 + i * 16);
		memset(parts[i], 1, 16);
	}
	for (unsigned i = 0; i < WORDS; i++)
		w->sum = w->sum * 31 + i;
	for (size_t i = 0; i < NR_ALLOCATIONS; i++)
		free(parts[i]);
}

/* A request that comes while another one is answered waits. */
static void *serve(void *ctx)
{
	struct worker *w = ctx;
	uint64_t due = now_ns(CLOCK_MONOTONIC);

	for (; w->nr < w->max; w->nr++, due += w->period_ns) {
		const struct timespec at = { (time_t)(due / SECOND_NS), (long)(due % SECOND_NS) };

		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
		answer(w);
		w->took[w->nr] = now_ns(CLOCK_MONOTONIC) - due;
	}
	return NULL;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	size_t hz = argc > 2 ? (size_t)atoi(argv[2]) : 0, max = argc > 2 ? hz * (size_t)atoi(argv[1]) : 0;
	uint64_t *all = calloc(NR_THREADS * max + 1, sizeof(*all)), cpu_ns;
	struct worker workers[NR_THREADS] = { 0 };

	if (!max || !all)
		return 2;
	for (size_t i = 0; i < NR_THREADS; i++) {
		workers[i] =
			(struct worker){ .took = all + i * max, .max = max, .period_ns = SECOND_NS / hz };
		if (pthread_create(&workers[i].thread, NULL, serve, &workers[i]))
			return 1;
	}
	for (size_t i = 0; i < NR_THREADS; i++)
		pthread_join(workers[i].thread, NULL);
	cpu_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID);
	qsort(all, NR_THREADS * max, sizeof(*all), compare);
	printf("%llu %llu\n", (unsigned long long)(cpu_ns / (NR_THREADS * max)),
	       (unsigned long long)all[NR_THREADS * max * 99 / 100]);
	free(all);
	return 0;
}

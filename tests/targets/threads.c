/* SPDX-License-Identifier: GPL-2.0-or-later */
/* threads [THREADS [OPERATIONS [SLOTS]]]: full speed, blocks are handed from thread to thread and freed elsewhere. */
#include "tests/targets/truth.h"

#include <pthread.h>
#include <stdint.h>

enum { NR_SLOTS = 256, MAX_SLOTS = 1 << 16, MAX_THREADS = 8192, BLOCK = 40 };

static void *slots[MAX_SLOTS];
static long nr_operations, nr_slots;
static uint64_t nr_malloc, nr_realloc;

FN static void *take_block(void)
{
	void *p = malloc(BLOCK);

	keep(p);
	return p;
}

/* Put a new block into a random slot and free what was there, whoever made it. */
static void *exchange(void *arg)
{
	unsigned int seed = (uintptr_t)arg;
	uint64_t mallocs = 0, reallocs = 0;

	for (long i = 0; i < nr_operations; i++) {
		unsigned int slot = rand_r(&seed) % nr_slots;
		void *p = take_block();

		mallocs++;
		if (i % 8 == 0) {
			p = realloc(p, BLOCK);
			reallocs++;
		}
		p = __atomic_exchange_n(&slots[slot], p, __ATOMIC_ACQ_REL);
		free(p);
	}
	__atomic_fetch_add(&nr_malloc, mallocs, __ATOMIC_RELAXED);
	__atomic_fetch_add(&nr_realloc, reallocs, __ATOMIC_RELAXED);
	return NULL;
}

int main(int argc, char **argv)
{
	static pthread_t threads[MAX_THREADS];
	long nr_threads = arg_or(argc, argv, 1, 8);
	int live = 0;

	truth_begin();
	nr_operations = arg_or(argc, argv, 2, 20000);
	nr_slots = arg_or(argc, argv, 3, NR_SLOTS);
	if (nr_threads > MAX_THREADS || nr_slots < 1 || nr_slots > MAX_SLOTS)
		return 2;
	for (uintptr_t i = 0; i < (uintptr_t)nr_threads; i++)
		if (pthread_create(&threads[i], NULL, exchange, (void *)(i + 1)))
			return 1;
	for (long i = 0; i < nr_threads; i++)
		pthread_join(threads[i], NULL);
	for (long i = 0; i < nr_slots; i++)
		live += slots[i] != NULL;
	expect("calls malloc %llu", (unsigned long long)nr_malloc);
	expect("calls realloc %llu", (unsigned long long)nr_realloc);
	expect("failed 0");
	expect("unknown 0");
	expect("live %d %d exchange", live, live * BLOCK);
	return 0;
}

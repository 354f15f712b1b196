/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * arenas [THREADS [MMAP_THRESHOLD [ARENAS]]]: all sizes, blocks handed from thread to thread, threads that end and
 * leave their caches and arenas to others, memory given back to the system.
 */
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>

#include "tests/targets/truth.h"

enum { NR_OWN = 300, NR_HANDS = 64, STEPS = 8000, ROUNDS = 2, MAX_THREADS = 64 };

static void *hands[NR_HANDS];

static size_t size_of(uint32_t random)
{
	if (random % 100 == 0)
		return 200000 + random % 300000;
	return random % 1500;
}

static void *work(void *arg)
{
	uint32_t random = (uint32_t)(uintptr_t)arg * 77 + 1;
	void *own[NR_OWN] = { NULL };

	for (int i = 0; i < STEPS; i++) {
		size_t size = size_of(random >> 12);
		void **slot = &own[(random >> 8) % NR_OWN];

		random = random * 1103515245 + 12345;
		free(*slot);
		*slot = random & 256 ? malloc(size) : calloc(size / 8 + 1, 8);
		if ((random >> 9) % 2000 == 0)
			malloc_trim(0);
		if (i % 100 == 0)
			*slot = __atomic_exchange_n(&hands[(random >> 10) % NR_HANDS], *slot,
						    __ATOMIC_ACQ_REL);
	}
	for (int i = 0; i < NR_OWN; i++)
		if (i % 3)
			free(own[i]);
	return NULL;
}

int main(int argc, char **argv)
{
	int nr = argc > 1 ? atoi(argv[1]) : 4;
	pthread_t threads[MAX_THREADS];

	if (argc > 2)
		mallopt(M_MMAP_THRESHOLD, atoi(argv[2]));
	if (argc > 3)
		mallopt(M_ARENA_MAX, atoi(argv[3]));
	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < nr; i++)
			if (pthread_create(&threads[i], NULL, work, (void *)(uintptr_t)i))
				return 1;
		for (int i = 0; i < nr; i++)
			pthread_join(threads[i], NULL);
	}
	malloc_trim(0);
	return 0;
}

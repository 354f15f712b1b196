/* SPDX-License-Identifier: GPL-2.0-or-later */
/* realloc in all its forms; the order of events decides whether the books are right. */
#include "tests/targets/truth.h"

#include <pthread.h>
#include <stdint.h>

static unsigned int nr_malloc, nr_realloc, nr_free, nr_failed;

static void *get(size_t size)
{
	void *p = malloc(size);

	keep(p);
	nr_malloc++;
	return p;
}

static void *resize(void *p, size_t size)
{
	p = realloc(p, size);
	keep(p);
	nr_realloc++;
	return p;
}

static void put(void *p)
{
	if (p)
		nr_free++;
	free(p);
}

/* The old block lives on. */
FN static void failing(void)
{
	void *p = get(100);
	volatile size_t huge = SIZE_MAX - 8192;

	if (resize(p, huge))
		abort();
	nr_failed++;
	memset(p, 1, 100);
	expect("live 1 100 failing");
}

FN static void from_null(void)
{
	resize(NULL, 30);
	expect("live 1 30 from_null");
}

/* glibc releases the block and returns NULL, others return a block. */
FN static void to_zero(void)
{
	void *p = resize(get(40), 0);

	expect("live %d 0 to_zero", p ? 1 : 0);
}

FN static void in_place(void)
{
	void *p = get(1000);

	for (int size = 1000; size >= 500; size -= 100)
		p = resize(p, size);
	expect("live 1 500 in_place");
}

FN static void moved(void)
{
	void *p = get(16), *fence = NULL;

	for (int size = 64; size <= 65536; size *= 2) {
		put(fence);
		p = resize(p, size);
		fence = get(8);
	}
	put(fence);
	expect("live 1 65536 moved");
}

/* malloc(0) and calloc(0, n) are blocks too. */
FN static void empty(void)
{
	void *p = get(0);
	void *q = calloc(0, 8);

	keep(q);
	put(get(0));
	put(NULL);
	expect("live %d 0 empty", (p ? 1 : 0) + (q ? 1 : 0));
}

enum { NR_THREADS = 4, NR_ROUNDS = 5000 };

/* Addresses that one thread gives up by realloc are taken by another at once. */
static void *churn(void *arg)
{
	unsigned int seed = (uintptr_t)arg;
	void *p = malloc(24);

	for (int i = 0; i < NR_ROUNDS; i++) {
		p = realloc(p, 16 + rand_r(&seed) % 2000);
		keep(p);
	}
	free(p);
	return NULL;
}

FN static void concurrent(void)
{
	pthread_t threads[NR_THREADS];

	for (uintptr_t i = 0; i < NR_THREADS; i++)
		if (pthread_create(&threads[i], NULL, churn, (void *)(i + 1)))
			abort();
	for (int i = 0; i < NR_THREADS; i++)
		pthread_join(threads[i], NULL);
	nr_malloc += NR_THREADS;
	nr_realloc += NR_THREADS * NR_ROUNDS;
	nr_free += NR_THREADS;
	expect("live 0 0 churn");
}

int main(void)
{
	truth_begin();
	failing();
	from_null();
	to_zero();
	in_place();
	moved();
	empty();
	concurrent();
	expect("calls malloc %u", nr_malloc);
	expect("calls realloc %u", nr_realloc);
	expect("calls free %u", nr_free);
	expect("failed %u", nr_failed);
	expect("unknown 0");
	return 0;
}

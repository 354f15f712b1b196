/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A program with its own allocator under the usual names, which libc then uses too. */
#include "tests/targets/truth.h"

static char arena[1 << 20] __attribute__((aligned(16)));
static size_t used;

FN static void *bump(size_t size)
{
	size_t at = __atomic_fetch_add(&used, ((size + 15) & ~(size_t)15) + 16, __ATOMIC_RELAXED);

	if (at + size + 16 > sizeof(arena))
		return NULL;
	memcpy(arena + at, &size, sizeof(size));
	return arena + at + 16;
}

FN void *malloc(size_t size)
{
	return bump(size);
}

FN void free(void *p)
{
	keep(p);
}

FN void *calloc(size_t n, size_t size)
{
	return bump(n * size);
}

FN void *realloc(void *old, size_t size)
{
	void *p = bump(size);
	size_t old_size = 0;

	if (old)
		memcpy(&old_size, (char *)old - 16, sizeof(old_size));
	if (p && old)
		memcpy(p, old, old_size < size ? old_size : size);
	return p;
}

FN static void holds(void)
{
	for (int i = 0; i < 6; i++) {
		void *p = malloc(100);

		keep(p);
	}
}

FN static void grows(void)
{
	void *p = malloc(10);

	for (int size = 20; size <= 100; size += 20)
		p = realloc(p, size);
	keep(p);
}

FN static void clears(void)
{
	void *p = calloc(4, 8);

	keep(p);
	free(p);
}

int main(void)
{
	truth_begin();
	holds();
	grows();
	clears();
	expect("live 6 600 holds");
	expect("live 1 100 grows");
	expect("live 0 0 clears");
	expect("calls malloc 7");
	expect("calls calloc 1");
	expect("calls realloc 5");
	expect("calls free 1");
	return 0;
}

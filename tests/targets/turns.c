/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * turns N: four call paths that take turns N times. The first two differ only in the outer return address: where the
 * function that allocates is called, the stack pointer and the return address are the same. turns N wait: says "ready"
 * then, and waits with an empty heap.
 */
#include <stdlib.h>
#include <unistd.h>

#define CALL __attribute__((noinline, used))

static CALL void allocate(void)
{
	free(malloc(24));
	__asm__ volatile("" ::: "memory");
}

static CALL void by_one(void)
{
	allocate();
	__asm__ volatile("" ::: "memory");
}

static CALL void by_other(void)
{
	allocate();
	__asm__ volatile("" ::: "memory");
}

static CALL void deeper(int levels)
{
	if (levels)
		deeper(levels - 1);
	else
		by_one();
	__asm__ volatile("" ::: "memory");
}

int main(int argc, char **argv)
{
	long nr = argc > 1 ? atol(argv[1]) : 1000;

	for (long i = 0; i < nr; i++) {
		by_one();
		by_other();
		deeper(3);
		deeper(40);
	}
	if (argc > 2 && write(1, "ready\n", 6) == 6)
		pause();
	return 0;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A program with many callers, for the cost of a live screen: callers N HZ allocates by each of N stacks HZ times a
 * second.
 */
#include <stdlib.h>
#include <unistd.h>

enum { NR_KEPT = 4096, BITS = 10 };

static void *kept[NR_KEPT];
static unsigned nr_calls;

static __attribute__((noinline)) void even(unsigned path, int depth);
static __attribute__((noinline)) void odd(unsigned path, int depth);

static inline __attribute__((always_inline)) void descend(unsigned path, int depth)
{
	if (!depth) {
		void **slot = &kept[nr_calls++ % NR_KEPT];

		free(*slot);
		*slot = malloc(100);
	} else if (path & 1) {
		odd(path >> 1, depth - 1);
	} else {
		even(path >> 1, depth - 1);
	}
	/* No call in tail position, so that each is on the stack. */
	__asm__ volatile("" ::: "memory");
}

static void even(unsigned path, int depth)
{
	descend(path, depth);
}

static void odd(unsigned path, int depth)
{
	descend(path, depth);
}

int main(int argc, char **argv)
{
	unsigned nr = argc > 1 ? (unsigned)atoi(argv[1]) : 1000;
	unsigned hz = argc > 2 ? (unsigned)atoi(argv[2]) : 10;

	for (;;) {
		for (unsigned i = 0; i < nr; i++)
			even(i, BITS);
		usleep(1000000 / hz);
	}
}

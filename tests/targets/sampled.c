/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sampled ROUNDS [fork]: blocks by each function in known numbers, and a leak of one block in 20 rounds. fork: then
 * come ROUNDS blocks of 1,000 bytes, which a child releases, and does the same again as its parent. Ends with 1 if that
 * child does not end well.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { KEPT = 64 };

static void *kept[KEPT];

__attribute__((noinline)) static void *remember(void)
{
	return malloc(2000);
}

__attribute__((noinline)) static void traffic(long i)
{
	free(kept[i % KEPT]);
	kept[i % KEPT] = malloc(1000);
}

/* realloc may go on in malloc, or in another function of the allocator, here three times from one place. */
__attribute__((noinline)) static void other_functions(void)
{
	volatile size_t step = 100; /* the compiler must not unroll the loop */
	void *grown = NULL, *aligned;

	for (size_t size = 300; size <= 500; size += step)
		grown = realloc(grown, size);
	free(grown);
	free(calloc(100, 8));
	if (!posix_memalign(&aligned, 64, 1000))
		free(aligned);
}

static void rounds_of(long rounds)
{
	void *volatile lost;

	for (long i = 0; i < rounds; i++) {
		traffic(i);
		other_functions();
		if (i % 20 == 0)
			lost = remember();
	}
	lost = NULL;
	(void)lost;
}

/* A list of @nr blocks, each with a pointer to the next one, or the end of one. */
static void **hand_down(long nr)
{
	void **list = NULL;

	for (long i = 0; i < nr; i++) {
		void **block = malloc(1000);

		if (!block)
			break;
		*block = list;
		list = block;
	}
	return list;
}

static void release(void **list)
{
	while (list) {
		void **next = *list;

		free(list);
		list = next;
	}
}

int main(int argc, char **argv)
{
	void **list;
	long rounds = argc > 1 ? atol(argv[1]) : 1;
	int status = 0;
	pid_t pid;

	rounds_of(rounds);
	if (argc > 2) {
		list = hand_down(rounds);
		pid = fork();
		if (!pid) {
			release(list);
			rounds_of(rounds);
			_exit(0);
		}
		waitpid(pid, &status, 0);
		release(list);
	}
	printf("%ld\n", rounds);
	return status != 0;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A heap of random blocks for the census: small, large, aligned, in several arenas, many of them freed again. Prints
 * its live blocks and the sums that malloc itself gives, then waits until standard input ends.
 *   census [SEED [THREADS [BLOCKS [locked|undumped|large]]]]
 * locked: one arena looks as if a thread were in a call. undumped: the pointers to the blocks of the first
 * thread are in memory that cores leave out. large: large blocks were freed, one of which had grown.
 */
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MAX_THREADS = 16, MAX_ALIGNED = 12, MAX_BLOCKS = 1 << 22 };

static void **blocks[MAX_THREADS];
static unsigned int nr_blocks = 20000, nr_threads = 3, seed = 1;
static pthread_barrier_t done;

static unsigned int next_random(unsigned int *state)
{
	*state = *state * 1103515245 + 12345;
	return *state >> 8;
}

static size_t random_size(unsigned int *state)
{
	unsigned int r = next_random(state) % 1000;

	if (r < 900)
		return next_random(state) % 300;
	if (r < 990)
		return next_random(state) % 5000;
	if (r < 999)
		return next_random(state) % 60000;
	return 130000 + next_random(state) % 300000;
}

static void *make_block(unsigned int *state)
{
	size_t size = random_size(state);
	unsigned int r = next_random(state) % 50;

	if (r == 0)
		return memalign(16U << next_random(state) % 9, size);
	return r == 1 ? calloc(1, size) : malloc(size);
}

/* Make blocks, and free half of them in any order. Threads free blocks of others too. */
static void *work(void *arg)
{
	unsigned int self = (unsigned int)(size_t)arg, state = seed * 7919 + self;

	for (unsigned int i = 0; i < nr_blocks; i++) {
		unsigned int at = next_random(&state) % nr_blocks;

		free(blocks[self][at]);
		blocks[self][at] = make_block(&state);
		if (next_random(&state) % 2) {
			at = next_random(&state) % nr_blocks;
			free(blocks[self][at]);
			blocks[self][at] = NULL;
		}
	}
	pthread_barrier_wait(&done);
	if (self)
		pause();
	return NULL;
}

/* Large blocks at aligned addresses, which are cut out of larger mappings. */
static void *aligned[MAX_ALIGNED];

static void make_aligned(void)
{
	for (unsigned int i = 0; i < MAX_ALIGNED; i++)
		aligned[i] = memalign(64U << i, 400000 + 1000 * i);
}

/* Sizes from 1 to 32 MiB, and one block that grows through them. What is free again lies side by side. */
static void free_large(void)
{
	enum { FIRST = 1 << 20, LAST = 32 << 20 };
	char *grown = NULL;

	for (size_t size = FIRST; size <= LAST; size *= 2) {
		char *block = malloc(size), *old = grown;

		grown = realloc(old, size + size / 2);
		if (!block || !grown)
			exit(1);
		block[0] = grown[0] = 1;
		free(block);
	}
	free(grown);
}

/* The lock of glibc is the first word of an arena, and each heap of an arena begins with its address. */
static void lock_arena(void)
{
	enum { HEAP_MASK = (64 << 20) - 1, NOT_MAIN = 4 };

	for (unsigned int i = 0; i < nr_blocks; i++) {
		const size_t *block = nr_threads > 1 ? blocks[1][i] : NULL;

		if (!block || !(block[-1] & NOT_MAIN))
			continue;
		**(int **)((size_t)block & ~(size_t)HEAP_MASK) = 1;
		return;
	}
}

static void *make_array(int is_undumped)
{
	size_t len = nr_blocks * sizeof(void *);
	void *p;

	if (!is_undumped)
		return calloc(nr_blocks, sizeof(void *));
	p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	madvise(p, len, MADV_DONTDUMP);
	return p;
}

/* Writes without malloc. */
static void print_all(FILE *out)
{
	for (unsigned int i = 0; i < MAX_ALIGNED; i++)
		fprintf(out, "block %p %zu\n", aligned[i], malloc_usable_size(aligned[i]));
	for (unsigned int t = 0; t < nr_threads; t++)
		for (unsigned int i = 0; i < nr_blocks; i++)
			if (blocks[t][i])
				fprintf(out, "block %p %zu\n", blocks[t][i],
					malloc_usable_size(blocks[t][i]));
}

/* Other C libraries have no sums. All lines are written after this. */
static void print_info(void)
{
#ifdef __GLIBC__
	malloc_info(0, stdout);
#endif
	printf("end\n");
}

int main(int argc, char **argv)
{
	static char buffer[1 << 16];
	const char *how = argc > 4 ? argv[4] : "";
	char byte;

	setvbuf(stdout, buffer, _IOFBF, sizeof(buffer));
	seed = argc > 1 ? (unsigned int)atoi(argv[1]) : seed;
	nr_threads = argc > 2 ? (unsigned int)atoi(argv[2]) : nr_threads;
	nr_blocks = argc > 3 ? (unsigned int)atoi(argv[3]) : nr_blocks;
	if (!nr_threads || nr_threads > MAX_THREADS || !nr_blocks || nr_blocks > MAX_BLOCKS)
		return 2;
	pthread_barrier_init(&done, NULL, nr_threads);
	for (unsigned int t = 0; t < nr_threads; t++)
		blocks[t] = make_array(!t && !strcmp(how, "undumped"));
	for (unsigned int t = 1; t < nr_threads; t++) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, work, (void *)(size_t)t))
			return 1;
	}
	make_aligned();
	work(NULL);
	if (!strcmp(how, "large"))
		free_large();
	print_all(stdout);
	printf("ready\n");
	fflush(stdout);
	print_info();
	fflush(stdout);
	if (!strcmp(how, "locked"))
		lock_arena();
	while (read(0, &byte, 1) > 0)
		;
	return 0;
}

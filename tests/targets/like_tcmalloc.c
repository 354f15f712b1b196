/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Has books as gperftools' tcmalloc has them (user/census/tcmalloc_find.c) since 2.17, where a leaf of the map of pages
 * need not begin with a page: spans of blocks that the program takes. Sleeps until SIGTERM.
 */
#include <stdint.h>
#include <sys/mman.h>

#include "tests/targets/truth.h"

enum {
	NR_BLOCKS = 100,
	NR_SPANS = 4,
	PAGE_SHIFT = 13,
	LEAF_BITS = 18,
	ROOT_BITS = 17,
	SIZE = 64,
	NR_IN_SPAN = (1 << PAGE_SHIFT) / SIZE,
	CLASS = 4,
	NR_CLASSES = 40,
	MAX_SIZE = 256 << 10,
};

/* In the .bss, as in the library. */
static volatile uint64_t root[1 << ROOT_BITS];
static uint64_t *volatile first_cache;
static void *volatile held[NR_BLOCKS];

static uint64_t *pages(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		exit(1);
	return p;
}

int main(void)
{
	static char buffer[256];
	uint64_t *books = pages(4 << 20), *spans = books + 8192, *leaf = books + 16384 + 8;
	char *heap =
		(char *)(((uintptr_t)pages(1 << 20) + (1 << PAGE_SHIFT)) & -(uintptr_t)(1 << PAGE_SHIFT));
	uint64_t page = (uintptr_t)heap >> PAGE_SHIFT;

	setvbuf(stdout, buffer, _IOFBF, sizeof(buffer));
	root[page >> LEAF_BITS] = (uintptr_t)leaf;
	for (int i = 0; i < NR_SPANS; i++) {
		uint64_t *span = spans + i * 8;

		span[0] = page + i;
		span[1] = 1;
		span[5] = NR_IN_SPAN | CLASS << 16;
		leaf[(page + i) & ((1 << LEAF_BITS) - 1)] = (uintptr_t)span;
	}
	/* The cache of a thread: a list for each size, all of them empty. */
	for (int i = 1; i < NR_CLASSES; i++)
		books[i * 4 + 3] = i == NR_CLASSES - 1 ? MAX_SIZE : (uint64_t)i * 16;
	first_cache = books;
	for (int i = 0; i < NR_BLOCKS; i++)
		held[i] = heap + i * SIZE;
	printf("ready %d\n", NR_BLOCKS);
	fflush(stdout);
	pause();
	return 0;
}

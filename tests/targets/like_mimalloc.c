/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Has memory that looks like the first words of a segment of mimalloc (user/census/mimalloc_find.c), but is none: small
 * numbers and a pointer into itself, at an address where a segment may begin. Sleeps until SIGTERM.
 */
#include <stdint.h>
#include <sys/mman.h>

#include "tests/targets/truth.h"

enum { SEGMENT = 32 << 20, NR_BLOCKS = 100, SIZE = 328 };

static void *held[NR_BLOCKS];

int main(void)
{
	uintptr_t room = (uintptr_t)mmap(NULL, 2 * SEGMENT, PROT_READ | PROT_WRITE,
					 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	/* How much is used, a pointer, slices, of which so many have books, kind, entries. */
	const uint64_t words[] = { 1, 512, 40, 1, 0, 3 };
	uint64_t *segment = (uint64_t *)((room + SEGMENT - 1) & ~(uintptr_t)(SEGMENT - 1));

	if ((void *)room == MAP_FAILED)
		return 1;
	memcpy(segment + 26, words, sizeof(words));
	segment[27] += (uintptr_t)segment;
	for (int i = 0; i < NR_BLOCKS; i++)
		held[i] = malloc(SIZE);
	printf("ready %d\n", NR_BLOCKS);
	fflush(stdout);
	pause();
	return 0;
}

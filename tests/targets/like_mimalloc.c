/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory as mimalloc has it (user/scan/mimalloc_map.c):
 * like_mimalloc [map|slices|segments|traced]. Without an argument it is none: small numbers and a pointer into
 * itself, at an address where a segment may begin. Else it has books of version 3, 2 or 1, with one page of blocks that
 * the program takes. Sleeps until SIGTERM, or ends if it is traced.
 */
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/targets/truth.h"

enum {
	SEGMENT = 32 << 20,
	NR_BLOCKS = 100,
	SIZE = 328,
	SLICE = 64 << 10,
	TABLE_BITS = 29,
	ROOT_WORDS = 1 << 18,
	ARENA = 4 << 20,
	SLOT = 96,
	ALIGNED = 32,
	NR_LOST = 10,
	NR_OTHERS = 20, /* freed by other threads */
	NR_USED = NR_BLOCKS + NR_LOST + NR_OTHERS,
	NR_READY = 200,
};

static void *volatile held[NR_BLOCKS];
/* As in the data of the library. */
static uint64_t *volatile root_of_map;
static volatile uint64_t secret = 0x9e3779b97f4a7c15;

static uint64_t *pages(size_t size, size_t align)
{
	uintptr_t room = (uintptr_t)mmap(NULL, size + align, PROT_READ | PROT_WRITE,
					 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if ((void *)room == MAP_FAILED)
		exit(1);
	return (uint64_t *)((room + align - 1) & ~(align - 1));
}

static void none(void)
{
	/* How much is used, a pointer, slices, of which so many have books, kind, entries. */
	const uint64_t words[] = { 1, 512, 40, 1, 0, 3 };
	uint64_t *segment = pages(SEGMENT, SEGMENT);

	memcpy(segment + 26, words, sizeof(words));
	segment[27] += (uintptr_t)segment;
	for (int i = 0; i < NR_BLOCKS; i++)
		held[i] = malloc(SIZE);
}

/* List the slots [from, to) behind each other. Each leads to a lost block, too, as freed memory may. */
static uint64_t list(char *first, int from, int to)
{
	for (int i = from; i < to; i++) {
		uint64_t *slot = (uint64_t *)(first + i * SLOT);

		slot[0] = i + 1 < to ? (uintptr_t)(slot + SLOT / 8) : 0;
		slot[1] = (uintptr_t)(first + (NR_BLOCKS + i % NR_LOST) * SLOT);
	}
	return from < to ? (uintptr_t)(first + from * SLOT) : 0;
}

static void take(char *first)
{
	for (int i = 0; i < NR_BLOCKS; i++)
		held[i] = first + i * SLOT;
}

/* Version 3: an arena of slices, the second of which begins with the description of a page. */
static void map(void)
{
	uint64_t *arena = pages(ARENA, SLICE), *page = arena + SLICE / 8, *table = pages(SLICE, SLICE);
	char *first = (char *)page + 128;
	uintptr_t addr = (uintptr_t)page;

	root_of_map = pages(ROOT_WORDS * 8 + SLICE, SLICE);
	root_of_map[0] = (uintptr_t)(root_of_map + ROOT_WORDS);
	root_of_map[addr >> TABLE_BITS] = (uintptr_t)table;
	table[addr / SLICE % (SLICE / 8)] = addr;
	arena[0] = (uintptr_t)arena;
	arena[1] = ARENA;
	/* In memory of the arena that has no page. */
	arena[2 * SLICE / 8] = (uintptr_t)(first + NR_BLOCKS * SLOT);
	page[1] = list(first, NR_USED, NR_READY - 10);
	page[2] = NR_USED | NR_READY << 16 | (uint64_t)((SLICE - 128) / SLOT) << 32;
	page[3] = list(first, NR_READY - 10, NR_READY);
	page[4] = list(first, NR_BLOCKS + NR_LOST, NR_USED) | 1;
	page[5] = SLOT;
	page[6] = (uintptr_t)first;
	page[12] = (uintptr_t)arena;
	page[14] = 7;
	take(first);
}

/* Version 2: a segment of slices, the second of which is a page. Its books lead to lost blocks, too. */
static void slices(void)
{
	uint64_t *segment = pages(SEGMENT, SEGMENT), *page = segment + 36 + 12;
	char *first = (char *)segment + SLICE;

	segment[27] = 1;
	segment[28] = (uintptr_t)segment ^ secret;
	segment[31] = SEGMENT / SLICE;
	segment[32] = 1;
	segment[34] = 2;
	for (int i = 0; i < NR_LOST; i++)
		segment[SLICE / 16 + i] = (uintptr_t)(first + (NR_BLOCKS + i) * SLOT);
	page[0] = 1;
	page[1] = NR_READY << 16 | (uint64_t)(SLICE / SLOT) << 32;
	page[2] = list(first, NR_USED, NR_READY - 10);
	page[3] = list(first, NR_READY - 10, NR_READY);
	page[4] = NR_USED;
	page[5] = SLOT;
	page[6] = (uintptr_t)first;
	page[7] = list(first, NR_BLOCKS + NR_LOST, NR_USED);
	take(first);
	/* An aligned block, before which a link of a list is left. */
	page[1] |= 1ULL << 49;
	held[1] = first + SLOT + ALIGNED;
	*(uint64_t *)(first + SLOT) = (uintptr_t)(first + NR_BLOCKS * SLOT);
}

/* Version 1: a segment of pages, the second of which is used. */
static void segments(void)
{
	uint64_t *segment = pages(ARENA, ARENA), *page = segment + 30;
	char *first = (char *)segment + SLICE;

	segment[4] = ARENA;
	segment[11] = 1;
	segment[12] = ARENA / SLICE;
	segment[13] = 8192;
	segment[14] = (uintptr_t)segment ^ secret;
	segment[18] = 16;
	segment[2 * SLICE / 8] = (uintptr_t)(first + NR_BLOCKS * SLOT);
	page[0] = 1 | 1 << 8 | NR_READY << 16 | (uint64_t)(SLICE / SLOT) << 32;
	page[1] = list(first, NR_USED, NR_READY - 10);
	page[2] = list(first, NR_READY - 10, NR_READY);
	page[3] = NR_USED;
	page[4] = SLOT;
	page[5] = (uintptr_t)first;
	page[6] = list(first, NR_BLOCKS + NR_LOST, NR_USED);
	take(first);
}

static char *next_slot;

/* Functions that make this an allocator. */
FN void *mi_malloc(size_t size);
FN void *mi_zalloc(size_t size);
FN void mi_free(void *p);
FN size_t mi_usable_size(const void *p);

void *mi_malloc(size_t size)
{
	char *slot = next_slot;

	keep(size);
	next_slot += SLOT;
	return slot;
}

void *mi_zalloc(size_t size)
{
	return mi_malloc(size);
}

void mi_free(void *p)
{
	keep(p);
}

size_t mi_usable_size(const void *p)
{
	keep(p);
	return SLOT;
}

FN static void lose_first(void)
{
	void *p = mi_zalloc(SLOT);

	keep(p);
	if (mi_usable_size(p))
		mi_free(NULL);
}

/* The first block of the page, whose address the books have, is lost. */
static void traced(void)
{
	segments();
	next_slot = held[0];
	lose_first();
	for (int i = 1; i < NR_BLOCKS; i++)
		held[i] = mi_malloc(SLOT);
	held[0] = NULL;
	next_slot = NULL;
	expect("definite 1 %d mi_zalloc", SLOT);
	fflush(stdout);
	_exit(0);
}

int main(int argc, char **argv)
{
	static char buffer[256];

	/* No block of another allocator. */
	setvbuf(stdout, buffer, _IOFBF, sizeof(buffer));
	if (argc < 2)
		none();
	else if (!strcmp(argv[1], "map"))
		map();
	else if (!strcmp(argv[1], "slices"))
		slices();
	else if (!strcmp(argv[1], "traced"))
		traced();
	else
		segments();
	printf("ready %d\n", NR_BLOCKS);
	fflush(stdout);
	pause();
	return 0;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Has data that look like the tree in which jemalloc keeps its pages (user/scan/jemalloc_tree.c), but is none:
 * "like_jemalloc short|mixed|many". The root is too short, or has a word that leads nowhere. By this tree the page with
 * the only pointer to a block would be free. With "many" each word of 4 MiB may belong to a root, and none does. With
 * "wide" all is right, as in a jemalloc for addresses of 57 bits: the page is free, so the block is lost.
 * With "books" it has only blocks of such a jemalloc, and sleeps until SIGTERM. "wide-old" and "books-old" are those
 * before 5.3.
 */
#include <stdint.h>
#include <sys/mman.h>

#include "tests/targets/truth.h"

enum {
	PAGE = 4096,
	LEVEL_WORDS = 1 << 18,
	SIZE = 777,
	FREE = 1 << 2,
	WIDE_WORDS = 1 << 15,
	CLASS = 9,
	NO_CLASS = 232,
	IS_SLAB = 1,
	SLAB_CLASS = 4,
	LARGE_CLASS = 55,
	LARGE = 0x6a000
};

/* An address of the user's half chooses a word of the first half. */
static uint64_t short_root[LEVEL_WORDS / 2 + 1], mixed_root[LEVEL_WORDS + 1];
static volatile uint64_t many_roots[2 * LEVEL_WORDS];
static volatile uint64_t wide_root[WIDE_WORDS];
static bool is_old;

FN static void *held_block(size_t size)
{
	return malloc(size);
}

static void *pages(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		exit(1);
	return p;
}

/* The word of @leaf for the page at @addr leads to @extent, which says that it has this page. */
static void describe(uint64_t *leaf, uint64_t *extent, const void *addr, uint64_t flags)
{
	uint64_t page = (uintptr_t)addr & ~(uint64_t)(PAGE - 1);

	leaf[page / PAGE % LEVEL_WORDS] = (uintptr_t)extent | flags;
	extent[1] = page;
	extent[2] = PAGE;
}

/* Two words for each page, three levels, and a description that knows its size class. */
static void describe_wide(uint64_t *node, uint64_t *extent, const void *addr, uint64_t size, uint64_t class,
			  uint64_t flags)
{
	uint64_t page = (uintptr_t)addr & ~(uint64_t)(PAGE - 1);
	uint64_t *leaf = (uint64_t *)(uintptr_t)node[(page >> 27) % WIDE_WORDS];

	leaf = leaf ? leaf : pages(2UL * WIDE_WORDS * sizeof(*leaf));
	wide_root[page >> 42] = (uintptr_t)node;
	node[(page >> 27) % WIDE_WORDS] = (uintptr_t)leaf;
	leaf[page / PAGE % WIDE_WORDS * 2] = (uintptr_t)extent;
	leaf[page / PAGE % WIDE_WORDS * 2 + 1] =
		is_old ? class | (flags & IS_SLAB) << 32 : class << 5 | flags;
	extent[0] = class << (is_old ? 18 : 20) | (flags & IS_SLAB) << 12;
	extent[1] = (uintptr_t)addr;
	extent[2] = size;
}

/* A slab of 64 blocks, of which 14 are free, and a large block as since 5.3.1: with a page of padding. */
static void sleep_with_books(uint64_t *node, uint64_t *extents)
{
	static char buffer[256];
	char *heap = (char *)(((uintptr_t)pages(4 << 20) + (2 << 20)) & -(uintptr_t)(2 << 20));

	setvbuf(stdout, buffer, _IOFBF, sizeof(buffer));
	describe_wide(node, extents, heap, PAGE, SLAB_CLASS, IS_SLAB);
	extents[0] |= 14ULL << (is_old ? 26 : 28);
	extents[8] = (1 << 14) - 1;
	describe_wide(node, extents + 16, heap + PAGE + 0x540, LARGE, LARGE_CLASS, 0);
	puts("ready");
	fflush(stdout);
	pause();
}

int main(int argc, char **argv)
{
	int is_wide = argc > 1 && strncmp(argv[1], "wide", 4) == 0;
	int is_mixed = argc > 1 && strcmp(argv[1], "mixed") == 0;
	uint64_t *root = is_mixed ? mixed_root : short_root;
	uint64_t *leaf, *extents;
	void *known, **kept;

	is_old = argc > 1 && strstr(argv[1], "-old");
	if (argc > 1 && !strncmp(argv[1], "books", 5))
		sleep_with_books(pages(WIDE_WORDS * 8), pages(PAGE));
	truth_begin();
	leaf = pages(LEVEL_WORDS * sizeof(*leaf));
	extents = pages(PAGE);
	kept = pages(PAGE);
	known = aligned_alloc(PAGE, 4 << 20);
	if (!known)
		return 1;
	kept[0] = held_block(SIZE);
	if (is_wide) {
		uint64_t *node = pages(WIDE_WORDS * sizeof(*node));

		describe_wide(node, extents, known, PAGE, CLASS, 0);
		/* Before 5.3 only the class says it. */
		describe_wide(node, extents + 8, kept, PAGE, is_old ? NO_CLASS : CLASS, FREE);
		expect("definite 1 %d held_block", SIZE);
		fflush(stdout);
		return 0;
	}
	describe(leaf, extents, known, 0);
	describe(leaf, extents + 8, kept, FREE);
	root[(uintptr_t)known >> 30] = root[(uintptr_t)kept >> 30] = (uintptr_t)leaf;
	if (is_mixed)
		root[LEVEL_WORDS] = root[1] = 5;
	for (size_t i = 0; argc > 1 && !strcmp(argv[1], "many") && i < 2 * LEVEL_WORDS; i++)
		many_roots[i] = i % (LEVEL_WORDS / 2) ? (uintptr_t)leaf : 5;
	expect("reachable 1 %d held_block", SIZE);
	fflush(stdout);
	return root[1] == 1;
}

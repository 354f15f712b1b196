/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Many blocks in one shape, and the verdict of each: many SHAPE BLOCKS [wait|list], as tests/leaks/heap.cc. SHAPE is
 * the number of a name that "many" lists. Blocks that are kept and lost take turns, so that the end of one is the start
 * of the next where an allocator puts no header between them.
 */
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/verdicts/roles.h"

enum { BLOCK = 64, NODE = 512, ROUNDS = 5, MAX_LISTED = 1 << 20 };

struct listed {
	uintptr_t disguised;
	size_t size;
	int is_lost;
};

static struct {
	long blocks, bytes;
} sums[2];
static struct listed *listed;
static size_t nr_listed, nr, alignment; /* 0: that of malloc() */
/* Memory of what is kept, outside of the heap. */
static void **words;

static void *add(void *p, size_t size, int is_lost)
{
	memset(p, 0, size);
	sums[is_lost].blocks++;
	sums[is_lost].bytes += (long)size;
	if (listed && nr_listed < MAX_LISTED)
		listed[nr_listed++] = (struct listed){ ~(uintptr_t)p, malloc_usable_size(p), is_lost };
	return p;
}

static inline __attribute__((always_inline)) void *ask(size_t size)
{
	void *p = NULL;

	return alignment && posix_memalign(&p, alignment, size) == 0 ? p : malloc(size);
}

FN static void *lost_block(size_t size)
{
	return add(ask(size), size, 1);
}

FN static void *kept_block(size_t size)
{
	return add(ask(size), size, 0);
}

FN static void lose(size_t size)
{
	void *p = lost_block(size);

	keep(p);
}

static void *pages(size_t bytes)
{
	return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

/* Keep @n words of @owner. */
static void put(size_t i, size_t n, void *const *owner)
{
	memcpy(words + i * n, owner, n * sizeof(*owner));
}

static void plain(void)
{
	for (size_t i = 0; i < nr; i++) {
		put(i, 1, (void *[]){ kept_block(BLOCK) });
		lose(BLOCK);
	}
}

static void vectors(void)
{
	for (size_t i = 0; i < nr; i++) {
		char *p = kept_block(BLOCK);

		put(i, 3, (void *[]){ p, p + BLOCK, p + BLOCK });
		lose(BLOCK);
	}
}

static void half_full_vectors(void)
{
	for (size_t i = 0; i < nr; i++) {
		char *p = kept_block(BLOCK);

		put(i, 3, (void *[]){ p, p + BLOCK / 2, p + BLOCK });
		lose(BLOCK);
	}
}

static void spans(void)
{
	for (size_t i = 0; i < nr; i++) {
		char *p = kept_block(BLOCK);

		put(i, 2, (void *[]){ p, p + BLOCK });
		lose(BLOCK);
	}
}

static void buffers(void)
{
	for (size_t i = 0; i < nr; i++) {
		char *p = kept_block(BLOCK);

		put(i, 3, (void *[]){ p, (void *)5, p + BLOCK });
		lose(BLOCK);
	}
}

/* Of different sizes: most ends lie inside of what an allocator gave. */
static size_t some_size(size_t i)
{
	return i % 3 ? BLOCK - 1 - i % 13 : BLOCK;
}

static void sized_spans(void)
{
	for (size_t i = 0; i < nr; i++) {
		char *p = kept_block(some_size(i));

		put(i, 2, (void *[]){ p, p + some_size(i) });
		lose(BLOCK);
	}
}

/* As hash tables: slots, a mask, the end of the slots. */
static void sized_tables(void)
{
	for (size_t i = 0; i < nr; i++) {
		char *p = kept_block(some_size(i));

		put(i, 4, (void *[]){ (void *)1, p, (void *)7, p + some_size(i) });
		lose(BLOCK);
	}
}

/* As std::vec::IntoIter of Rust: the block, the next element, the capacity, the end. */
static void iterators(void)
{
	for (size_t i = 0; i < nr; i++) {
		char *p = kept_block(BLOCK);

		put(i, 4, (void *[]){ p, p + 8 + i % 7 * 8, (void *)8, p + BLOCK });
		lose(BLOCK);
	}
}

static void rings(void)
{
	for (size_t i = 0; i < nr; i++) {
		char *p = kept_block(BLOCK);

		put(i, 3, (void *[]){ p + BLOCK / 2, p, p + BLOCK });
		lose(BLOCK);
	}
}

/* As std::deque of libstdc++: a map, its size, and two positions of four words each. */
static void queues(void)
{
	for (size_t i = 0; i < nr; i++) {
		void **map = kept_block(BLOCK);
		char *node = kept_block(NODE);

		map[3] = node;
		put(i, 10,
		    (void *[]){ map, (void *)8, node, node, node + NODE, map + 3, node + 8, node, node + NODE,
				map + 3 });
		lose(NODE);
	}
}

static void freed_arrays(void)
{
	for (int round = 0; round < ROUNDS; round++) {
		void **array = malloc(nr / ROUNDS * sizeof(*array));

		for (size_t i = 0; i < nr / ROUNDS; i++)
			array[i] = lost_block(BLOCK);
		keep(array);
		free(array);
	}
}

struct link {
	struct link *next;
	void *value;
};

/* A list of which each link is freed, and none of the values. */
static void freed_lists(void)
{
	struct link *first = NULL, *l;

	for (size_t i = 0; i < nr; i++) {
		l = malloc(sizeof(*l));
		l->value = lost_block(BLOCK);
		l->next = first;
		first = l;
	}
	for (; first; first = l) {
		l = first->next;
		free(first);
	}
}

/* Allocators may give more than was asked for, and an address within it. */
static void aligned(void)
{
	alignment = 64;
	for (size_t i = 0; i < nr; i++) {
		put(i, 1, (void *[]){ kept_block(BLOCK + BLOCK / 2) });
		lose(BLOCK + BLOCK / 2);
	}
}

/* Nothing is lost: aligned nodes of a list, and objects behind headers that form a list. */
static void aligned_lists(void)
{
	struct {
		void *next, *rest[11];
	} *first = NULL, *node, *headed = NULL;

	alignment = 64;
	for (size_t i = 0; i < nr; i++) {
		node = kept_block(sizeof(*node));
		node->next = first;
		first = node;
		node = kept_block(sizeof(*node));
		node->next = headed;
		headed = node;
		put(i, 1, (void *[]){ &headed->rest[3] });
	}
	put(nr, 2, (void *[]){ first, headed });
}

/* Nothing is lost: each word is the end of the block before, too. */
static void consecutive_pointers(void)
{
	for (size_t i = 0; i < nr; i++)
		words[i] = kept_block(BLOCK);
}

static void consecutive_pairs(void)
{
	for (size_t i = 0; i < nr; i++)
		put(i, 4, (void *[]){ kept_block(BLOCK), kept_block(BLOCK), (void *)1, (void *)1 });
}

/* Nothing is lost: first and last of lists of one to three links, and where the next link goes. */
static void tails(void)
{
	for (size_t i = 0; i < nr; i++) {
		void **first = kept_block(BLOCK), **last = first;

		for (size_t k = 0; k < i % 3; k++, last = *last)
			*last = kept_block(BLOCK);
		put(i, 4, (void *[]){ first, last, last, last + i % 2 });
	}
}

/* Nothing is lost: entries of an array, each with data and a position in it, which some do not have. */
static void cursors(void)
{
	for (size_t i = 0; i < nr; i++) {
		char *p = kept_block(BLOCK);

		put(i, 2, (void *[]){ p, i % 5 ? p + i % 8 * 8 : NULL });
	}
}

/* Nothing is lost: edges of a graph, each from the node before to the next one. */
static void paths(void)
{
	void *from = kept_block(BLOCK);

	for (size_t i = 0; i + 1 < nr; i++) {
		void *to = kept_block(BLOCK);

		put(i, 2, (void *[]){ from, to });
		from = to;
	}
}

/* Nothing is lost: an object, a place in it, and another object. */
static void places(void)
{
	for (size_t i = 0; i < nr; i++) {
		char *p = kept_block(BLOCK);

		put(i, 2, (void *[]){ p + 8, kept_block(BLOCK) });
	}
}

static const struct shape shapes[] = {
	{ "plain", plain },
	{ "vectors", vectors },
	{ "half_full_vectors", half_full_vectors },
	{ "spans", spans },
	{ "buffers", buffers },
	{ "sized_spans", sized_spans },
	{ "sized_tables", sized_tables },
	{ "iterators", iterators },
	{ "rings", rings },
	{ "queues", queues },
	{ "freed_arrays", freed_arrays },
	{ "freed_lists", freed_lists },
	{ "aligned", aligned },
	{ "consecutive_pointers", consecutive_pointers },
	{ "consecutive_pairs", consecutive_pairs },
	{ "tails", tails },
	{ "cursors", cursors },
	{ "paths", paths },
	{ "places", places },
	{ "aligned_lists", aligned_lists },
};

static void say(const char *word)
{
	puts(word);
	fflush(stdout);
}

static void wait_line(void)
{
	char c;

	while (read(0, &c, 1) == 1 && c != '\n')
		;
}

FN static void scrub_stack(void)
{
	volatile char dead[16384];

	for (size_t i = 0; i < sizeof(dead); i++)
		dead[i] = 0;
}

static void tell(void)
{
	if (sums[1].blocks)
		printf("expect definite %ld %ld lost_block\n", sums[1].blocks, sums[1].bytes);
	if (sums[0].blocks)
		printf("expect reachable %ld %ld kept_block\n", sums[0].blocks, sums[0].bytes);
	for (size_t i = 0; i < nr_listed; i++)
		printf("block 0x%lx %zu %s\n", ~listed[i].disguised, listed[i].size,
		       listed[i].is_lost ? "definite" : "reachable");
}

int main(int argc, char **argv)
{
	static char out[4096];
	size_t shape = argc > 1 ? (size_t)atol(argv[1]) : 0;
	int has_line = argc > 3;

	setvbuf(stdout, out, _IOFBF, sizeof(out));
	for (size_t i = 0; argc < 2 && i < sizeof(shapes) / sizeof(*shapes); i++)
		puts(shapes[i].name);
	if (argc < 2)
		return 0;
	nr = argc > 2 ? (size_t)atol(argv[2]) : 1000;
	if (shape >= sizeof(shapes) / sizeof(*shapes) || nr > MAX_LISTED / 4)
		return 2;
	words = pages(nr * 10 * sizeof(*words));
	if (has_line && strcmp(argv[3], "list") == 0)
		listed = pages(MAX_LISTED * sizeof(*listed));
	else if (has_line) {
		say("ready");
		wait_line();
	}
	shapes[shape].build();
	scrub_stack();
	tell();
	say("built");
	if (has_line)
		wait_line();
	_exit(0);
}

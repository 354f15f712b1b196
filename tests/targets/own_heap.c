/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * mimalloc as it is linked into a program: the ends of heaps release memory that the allocator took unseen, and a
 * function returns the caller's buffer or a block. All that user() has is released; loser() loses a path and a heap.
 */
#include "tests/targets/truth.h"

struct heap {
	void *pages;
};

static _Alignas(64) char arena[1 << 16];
static size_t used;

FN static void *take(size_t size)
{
	void *p = arena + used;

	used += (size + 63) & ~(size_t)63;
	return p;
}

FN void *mi_malloc(size_t size);
FN void *mi_zalloc(size_t size);
FN void *mi_heap_malloc(struct heap *heap, size_t size);
FN void mi_free(void *p);
FN struct heap *mi_heap_new(void);
FN void mi_heap_delete(struct heap *heap);
FN char *mi_realpath(const char *name, char *buffer);

void *mi_malloc(size_t size)
{
	return take(size);
}

void *mi_zalloc(size_t size)
{
	return memset(take(size), 0, size);
}

void *mi_heap_malloc(struct heap *heap, size_t size)
{
	keep(heap);
	return take(size);
}

void mi_free(void *p)
{
	keep(p);
}

/* Only mimalloc has such a function: the others are what their names say. */
FN size_t mi_usable_size(const void *p)
{
	keep(p);
	return 64;
}

/* The heap is a block that the tracer sees, its pages are none. */
struct heap *mi_heap_new(void)
{
	struct heap *heap = mi_zalloc(sizeof(*heap));

	heap->pages = take(100);
	return heap;
}

void mi_heap_delete(struct heap *heap)
{
	mi_free(heap->pages);
	mi_free(heap);
}

char *mi_realpath(const char *name, char *buffer)
{
	char *copy, *result;

	if (buffer)
		return strcpy(buffer, name);
	copy = strcpy(mi_malloc(64), name);
	result = strcpy(take(64), copy);
	mi_free(copy);
	return result;
}

FN static void user(void)
{
	char bytes[64], *buffer = bytes;

	for (int i = 0; i < 5; i++) {
		struct heap *heap = mi_heap_new();
		void *p = mi_heap_malloc(heap, 100);

		mi_heap_delete(heap);
		mi_free(p);
		mi_free(mi_realpath("/tmp", NULL));
		keep(buffer);
		mi_realpath("/tmp", buffer);
		keep(buffer);
	}
}

FN static void loser(void)
{
	char *path = mi_realpath("/tmp", NULL);
	struct heap *heap = mi_heap_new();

	keep(path);
	keep(heap);
}

int main(void)
{
	truth_begin();
	user();
	loser();
	expect("allocs 20 860 user");
	expect("live 0 0 user");
	expect("live 2 8 loser");
	expect("unknown 0");
	if (mi_usable_size(NULL))
		mi_free(mi_malloc(1));
	scrub();
	return 0;
}

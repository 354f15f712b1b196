/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Uses the own functions of an allocator: "own_api my|jemalloc|mimalloc|mimalloc-heap". The first are those of this
 * program, which have the names of jemalloc's behind a prefix; the others are those of a preloaded library. Each block
 * of user() is released; those of loser() are lost. With mimalloc-heap a heap is destroyed with its blocks.
 */
#include <stdint.h>

#include "tests/targets/truth.h"

#define LIBRARY __attribute__((weak))

LIBRARY void *mallocx(size_t size, int flags);
LIBRARY void *rallocx(void *p, size_t size, int flags);
LIBRARY size_t xallocx(void *p, size_t size, size_t extra, int flags);
LIBRARY void dallocx(void *p, int flags);
LIBRARY void sdallocx(void *p, size_t size, int flags);
LIBRARY void *mi_malloc_aligned(size_t size, size_t align);
LIBRARY void *mi_zalloc_aligned(size_t size, size_t align);
LIBRARY void *mi_realloc_aligned(void *p, size_t size, size_t align);
LIBRARY void mi_free_aligned(void *p, size_t align);
LIBRARY void mi_free_size(void *p, size_t size);
LIBRARY void *mi_recalloc(void *p, size_t count, size_t size);
LIBRARY char *mi_strdup(const char *s);
LIBRARY void *mi_heap_new(void);
LIBRARY void *mi_heap_malloc(void *heap, size_t size);
LIBRARY void *mi_heap_realloc(void *heap, void *p, size_t size);
LIBRARY void mi_heap_destroy(void *heap);

static _Alignas(64) char arena[1 << 16];
static size_t used;

FN void *my_mallocx(size_t size, int flags);
FN void *my_rallocx(void *p, size_t size, int flags);
FN size_t my_xallocx(void *p, size_t size, size_t extra, int flags);
FN void my_sdallocx(void *p, size_t size, int flags);
FN void my_free(void *p);

void *my_mallocx(size_t size, int flags)
{
	void *p = arena + used;

	keep(flags);
	used += (size + 63) & ~(size_t)63;
	return p;
}

void *my_rallocx(void *p, size_t size, int flags)
{
	keep(p);
	return my_mallocx(size, flags);
}

size_t my_xallocx(void *p, size_t size, size_t extra, int flags)
{
	keep(p);
	keep(flags);
	return size + extra < 64 ? size + extra : 64;
}

void my_sdallocx(void *p, size_t size, int flags)
{
	keep(p);
	keep(size);
	keep(flags);
}

void my_free(void *p)
{
	keep(p);
}

/* Only jemalloc has such a function: the others are what their names say. */
FN int my_mallctl(void)
{
	return 0;
}

struct functions {
	void *(*take)(size_t size, int flags);
	void *(*move)(void *p, size_t size, int flags);
	size_t (*resize)(void *p, size_t size, size_t extra, int flags);
	void (*give)(void *p, size_t size, int flags);
};

FN static void user(const struct functions *f)
{
	for (int i = 0; i < 5; i++) {
		void *p = f->take(100, 0), *q = f->take(40, 0);

		p = f->move(p, 5000, 0);
		f->resize(q, 48, 0, 0);
		f->give(q, 48, 0);
		f->give(p, 5000, 0);
	}
}

FN static void loser(const struct functions *f)
{
	void *p = f->take(5000, 0), *q = f->take(40, 0);

	f->resize(q, 48, 0, 0);
	keep(p);
	keep(q);
}

FN static void mi_user(void)
{
	for (int i = 0; i < 5; i++) {
		void *p = mi_malloc_aligned(100, 64), *q = mi_zalloc_aligned(30, 8);

		p = mi_realloc_aligned(p, 3000, 64);
		q = mi_recalloc(q, 5, 70);
		mi_free_aligned(p, 64);
		mi_free_size(q, 350);
		free(mi_strdup("text"));
	}
}

FN static void mi_loser(void)
{
	void *p = mi_zalloc_aligned(5000, 8);

	keep(p);
}

FN static void heap_user(void)
{
	void *heap = mi_heap_new();

	for (int i = 0; i < 10; i++) {
		void *p = mi_heap_malloc(heap, 100);

		p = mi_heap_realloc(heap, p, 200);
		keep(p);
	}
	mi_heap_destroy(heap);
}

int main(int argc, char **argv)
{
	const char *which = argc > 1 ? argv[1] : "my";
	const struct functions mine = { my_mallocx, my_rallocx, my_xallocx, my_sdallocx };
	const struct functions library = { mallocx, rallocx, xallocx, sdallocx };
	const struct functions *f = strcmp(which, "jemalloc") ? &mine : &library;

	truth_begin();
	if (!strcmp(which, "mimalloc-heap")) {
		heap_user();
		scrub();
		return 0;
	}
	if (!strcmp(which, "mimalloc")) {
		mi_user();
		mi_loser();
		expect("allocs 25 17400 mi_user");
		expect("live 0 0 mi_user");
		expect("live 1 5000 mi_loser");
	} else {
		user(f);
		loser(f);
		expect("live 0 0 user");
		expect("live 2 5048 loser");
		expect("unknown 0");
	}
	if (f == &mine && !my_mallctl())
		my_free(my_mallocx(1, 0));
	scrub();
	return 0;
}

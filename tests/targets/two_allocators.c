/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Has blocks of malloc that only blocks of another allocator lead to: two_allocators LIBRARY [FUNCTION [deep]], else
 * mi_malloc. Loses 10 of malloc, prints "ready", and waits for ever.
 */
#include <dlfcn.h>

#include "tests/targets/truth.h"

enum { NR_LOST = 10 };

static void **first;

FN static void *new_block(void)
{
	return memset(malloc(80), 0, 80);
}

/* Only an array that was freed has them. */
FN static void lose(void)
{
	void **array = malloc(NR_LOST * sizeof(*array));

	for (int i = 0; i < NR_LOST; i++)
		array[i] = new_block();
	keep(array);
	free(array);
}

int main(int argc, char **argv)
{
	/* The library calls its own functions, and not those of one like it that is preloaded. */
	int flags = RTLD_NOW | RTLD_LOCAL | (argc > 3 ? RTLD_DEEPBIND : 0);
	void *library = argc > 1 ? dlopen(argv[1], flags) : NULL;
	void *(*other)(size_t) =
		library ? (void *(*)(size_t))dlsym(library, argc > 2 ? argv[2] : "mi_malloc") : NULL;

	if (!other)
		return 2;
	for (int i = 0; i < 100; i++) {
		void **block = other(48);

		block[0] = first;
		block[1] = new_block();
		first = block;
	}
	lose();
	scrub();
	puts("ready");
	fflush(stdout);
	for (;;)
		pause();
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Has blocks of malloc that only blocks of mimalloc lead to: two_allocators LIBRARY. Loses 10 of malloc, prints
 * "ready", and waits for ever.
 */
#include <dlfcn.h>

#include "tests/targets/truth.h"

static void **first;

FN static void *new_block(void)
{
	return memset(malloc(80), 0, 80);
}

FN static void lose(void)
{
	void *p = new_block();

	keep(p);
}

int main(int argc, char **argv)
{
	void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
	void *(*other)(size_t) = library ? (void *(*)(size_t))dlsym(library, "mi_malloc") : NULL;

	if (!other)
		return 2;
	for (int i = 0; i < 100; i++) {
		void **block = other(48);

		block[0] = first;
		block[1] = new_block();
		first = block;
	}
	for (int i = 0; i < 10; i++)
		lose();
	scrub();
	puts("ready");
	fflush(stdout);
	for (;;)
		pause();
}

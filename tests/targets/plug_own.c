/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Loaded by dlopen.c: has a malloc and free of its own, used inside this library alone. */
#include "tests/targets/truth.h"

static char arena[1 << 16] __attribute__((aligned(16)));
static size_t used;
static volatile size_t nr_freed; /* so that free is long enough for a jump */

void *plug_own_allocates(int nr);

FN void *malloc(size_t size)
{
	void *p = arena + used;

	used += (size + 15) & ~(size_t)15;
	return used <= sizeof(arena) ? p : NULL;
}

FN void free(void *p)
{
	keep(p);
	nr_freed++;
}

/* Frees them all: the library goes, and may come again to the same place. */
FN void *plug_own_allocates(int nr)
{
	void *p = NULL;

	for (int i = 0; i < nr; i++) {
		p = malloc(56);
		keep(p);
		free(p);
	}
	return p;
}

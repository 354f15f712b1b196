/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Loaded by dlopen.c: allocates by the program's allocator. */
#include "tests/targets/truth.h"

void *plug_allocates(int nr);

FN void *plug_allocates(int nr)
{
	void *p = NULL;

	for (int i = 0; i < nr; i++) {
		p = malloc(72);
		keep(p);
	}
	return p;
}

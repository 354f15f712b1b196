/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Calls that are allowed, and mistakes nevertheless: realloc to size 0, and sizes that are negative numbers. */
#include <stdlib.h>

#include "tests/targets/truth.h"

FN static void *shrinks_to_nothing(void *p)
{
	volatile size_t nothing = 0;

	return realloc(p, nothing);
}

FN static void *asks_for_a_negative_size(void)
{
	volatile long size = -8;

	return malloc((size_t)size);
}

int main(void)
{
	void *p;

	truth_begin();
	for (int i = 0; i < 3; i++) {
		p = shrinks_to_nothing(malloc(10));
		keep(p);
	}
	p = asks_for_a_negative_size();
	keep(p);
	return p != NULL;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Calls that are allowed, and mistakes nevertheless: realloc to size 0, sizes that are negative numbers, and alignments
 * that are no powers of two.
 */
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

FN static void *asks_for_bad_alignments(void)
{
	void *p = NULL;
	volatile size_t bad = 24, too_small = 4, good = 32;

	free(posix_memalign(&p, bad, 100) ? NULL : p);
	free(posix_memalign(&p, too_small, 100) ? NULL : p);
	free(posix_memalign(&p, good, 100) ? NULL : p);
	free(aligned_alloc(good, 96));
	return aligned_alloc(bad, 96);
}

int main(void)
{
	void *p;

	truth_begin();
	for (int i = 0; i < 3; i++) {
		p = shrinks_to_nothing(malloc(10));
		keep(p);
	}
	free(asks_for_bad_alignments());
	p = asks_for_a_negative_size();
	keep(p);
	return p != NULL;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A program with many live blocks, for the memory that heaptap needs for them: keep BLOCKS. */
#include <stdlib.h>

enum { BLOCK_BYTES = 24 };

int main(int argc, char **argv)
{
	long nr = argc > 1 ? atol(argv[1]) : 1000000;
	void *last = NULL;

	for (long i = 0; i < nr; i++) {
		void **block = malloc(BLOCK_BYTES);

		if (!block)
			return 1;
		*block = last;
		last = block;
	}
	return 0;
}

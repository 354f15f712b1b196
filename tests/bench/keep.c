/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A program with many live blocks, for the memory and the time that heaptap needs for them: keep BLOCKS [BYTES [wait]].
 * With BYTES it prints "ready" in the end, and waits until standard input ends. With "wait" it prints "waiting" first,
 * and begins when it can read a byte.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { BLOCK_BYTES = 24 };

int main(int argc, char **argv)
{
	long nr = argc > 1 ? atol(argv[1]) : 1000000;
	size_t size = argc > 2 ? (size_t)atol(argv[2]) : BLOCK_BYTES;
	void *last = NULL;
	char byte;

	if (argc > 3) {
		puts("waiting");
		fflush(stdout);
		if (read(0, &byte, 1) < 0)
			return 1;
	}

	for (long i = 0; i < nr; i++) {
		void **block = malloc(size < sizeof(void *) ? sizeof(void *) : size);

		if (!block)
			return 1;
		*block = last;
		last = block;
	}
	if (argc > 2) {
		puts("ready");
		fflush(stdout);
		while (read(0, &byte, 1) > 0)
			;
	}
	return 0;
}

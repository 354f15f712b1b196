/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Many blocks of one size, where an allocator without headers puts them side by side: "crowd table|shapes". table: a
 * table of pointers to all of them, in a row. shapes: the same, and words around that look as begin, end and positions
 * of containers. Nothing is lost.
 */
#include "tests/targets/truth.h"

enum { NR = 1000000, SIZE = 64, NR_SHAPED = 200000, WORDS = 8 };

/* Not static: the compiler would drop what is never read. */
char **table;
char **shapes;

FN static void fill(void)
{
	table = malloc(NR * sizeof(*table));
	for (int i = 0; i < NR; i++)
		table[i] = memset(malloc(SIZE), 0, SIZE);
}

/* [begin, position, end], [position, begin, end], [begin, end]: of each block and the next one. */
FN static void shape(void)
{
	shapes = malloc((size_t)NR_SHAPED * WORDS * sizeof(*shapes));
	for (int i = 0; i < NR_SHAPED; i++) {
		char *begin = table[i], *end = table[i + 1], **words = shapes + (size_t)i * WORDS;

		words[0] = words[4] = words[6] = begin;
		words[1] = words[3] = begin + 8 + i % 48;
		words[2] = words[5] = words[7] = end;
	}
}

int main(int argc, char **argv)
{
	fill();
	if (argc > 1 && !strcmp(argv[1], "shapes"))
		shape();
	printf("ready\n");
	fflush(stdout);
	_exit(0);
}

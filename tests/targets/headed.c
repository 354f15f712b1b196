/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Blocks without a pointer to their start: "headed one|wrapper|scattered|marked [wait]". one: all of a caller behind a
 * header. wrapper: two each of many callers, behind the header of a wrapper around malloc(). scattered: pointers lead
 * anywhere. marked: pointers with a counter in their upper bits. Then lose() loses NR_LOST blocks, of the same size.
 */
#include <stdint.h>

#include "tests/targets/truth.h"

enum { NR = 300, NR_LOST = 20, SIZE = 100, HEADER = 16, DEEP = 60 };

/* Not static: the compiler would drop what is never read. */
char *held[NR];
uint64_t marked;

FN static char *wrapper(size_t size)
{
	char *p = malloc(size + HEADER);

	memset(p, 0, size + HEADER);
	return p + HEADER;
}

FN static void hold(const char *how, int i)
{
	char *p = wrapper(SIZE - HEADER);

	if (!strcmp(how, "scattered"))
		p += i % 70 - HEADER + 1;
	if (strcmp(how, "marked")) {
		held[i] = p;
		return;
	}
	*(uint64_t *)(void *)(p - HEADER) = marked;
	marked = (uint64_t)(uintptr_t)(p - HEADER) | (uint64_t)(i + 1) << 48;
}

/* Each depth is another call stack. */
FN static int hold_deep(int depth, int i)
{
	if (depth)
		return hold_deep(depth - 1, i) + 1;
	hold("wrapper", i);
	return 0;
}

FN static void lose(void)
{
	char *p = malloc(SIZE);

	memset(p, 0, SIZE);
	keep(p);
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "one";
	int is_wrapper = !strcmp(how, "wrapper");

	for (int i = 0; !is_wrapper && i < NR; i++)
		hold(how, i);
	for (int i = 0; is_wrapper && i < 2 * DEEP; i++)
		hold_deep(i / 2, i);
	for (int i = 0; i < NR_LOST; i++)
		lose();
	scrub();
	printf("ready\n");
	fflush(stdout);
	if (argc > 2)
		pause();
	_exit(0);
}

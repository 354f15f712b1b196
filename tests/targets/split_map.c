/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Mappings that munmap and mprotect have split, with blocks behind them; for --mmap. Each is one block. */
#include "tests/targets/truth.h"

#include <sys/mman.h>

static size_t page;
static char *volatile held[3];

/* Eight pages without the third and the sixth: parts of two, two and two. */
static char *split(void)
{
	char *p = mmap(NULL, 8 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		abort();
	munmap(p + 2 * page, page);
	munmap(p + 5 * page, page);
	mprotect(p + 3 * page, page, PROT_READ);
	return p;
}

FN static void lost(void)
{
	char *p = split();

	*(void **)(p + 6 * page) = malloc(100);
	p = NULL;
	keep(p);
}

FN static void held_at_first(void)
{
	held[0] = split();
	*(void **)(held[0] + 6 * page) = malloc(10);
}

FN static void held_at_last(void)
{
	held[1] = split() + 6 * page;
}

FN static void held_inside(void)
{
	held[2] = split() + 4 * page + 64;
}

int main(void)
{
	page = (size_t)sysconf(_SC_PAGESIZE);
	truth_begin();
	lost();
	held_at_first();
	held_at_last();
	held_inside();
	return 0;
}

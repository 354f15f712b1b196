/* SPDX-License-Identifier: GPL-2.0-or-later */
/* mmap, munmap (in part, across several) and mremap (grow, shrink, move); for --mmap. */
#include "tests/targets/truth.h"

#include <sys/mman.h>

static size_t page;

static char *map(size_t pages, void *at)
{
	char *p = mmap(at, pages * page, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | (at ? MAP_FIXED : 0), -1, 0);

	if (p == MAP_FAILED)
		abort();
	return p;
}

FN static void whole(void)
{
	munmap(map(4, NULL), 4 * page);
	expect("bytes 0 whole");
}

FN static void middle(void)
{
	munmap(map(5, NULL) + 2 * page, page);
	expect("bytes %zu middle", 4 * page);
}

/* Two neighbours, unmapped from the middle of one to the middle of the other. */
FN static void across(void)
{
	char *room = map(8, NULL);

	munmap(room, 8 * page);
	map(4, room);
	map(4, room + 4 * page);
	munmap(room + 2 * page, 4 * page);
	expect("bytes %zu across", 4 * page);
}

FN static void replaced(void)
{
	map(2, map(4, NULL));
	expect("bytes %zu replaced", 4 * page);
}

FN static void remapped(void)
{
	char *p = map(4, NULL);

	p = mremap(p, 4 * page, 16 * page, MREMAP_MAYMOVE);
	p = mremap(p, 16 * page, 6 * page, 0);
	if (p == MAP_FAILED)
		abort();
	expect("bytes %zu remapped", 6 * page);
}

FN static void failing(void)
{
	volatile size_t huge = (size_t)1 << (sizeof(size_t) * 8 - 2);

	if (mmap(NULL, huge, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED)
		abort();
	expect("bytes 0 failing");
}

int main(void)
{
	page = sysconf(_SC_PAGESIZE);
	truth_begin();
	whole();
	middle();
	across();
	replaced();
	remapped();
	failing();
	return 0;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Drops all pages of code that come from files, as programs do to save memory: the kernel reads them again. */
#include "tests/targets/truth.h"

#include <inttypes.h>
#include <sys/mman.h>

enum { NR_PAIRS = 1000, MAX_RANGES = 200 };

static struct {
	uintptr_t start, end;
} ranges[MAX_RANGES];

/* With the C library's malloc, which stdio calls, too: so the list is complete before anything is dropped. */
static int list_ranges(void)
{
	static char text[1 << 14];
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512];
	int nr = 0;

	if (!maps)
		return -1;
	setvbuf(maps, text, _IOFBF, sizeof(text));
	while (fgets(line, sizeof(line), maps) && nr < MAX_RANGES) {
		uintptr_t start, end;
		char rights[8];

		if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %7s", &start, &end, rights) == 3 &&
		    rights[2] == 'x' && rights[1] != 'w' && strchr(line, '/')) {
			ranges[nr].start = start;
			ranges[nr++].end = end;
		}
	}
	fclose(maps);
	return nr;
}

static void pairs(void)
{
	for (size_t i = 0; i < NR_PAIRS; i++) {
		void *p = malloc(i + 1);

		keep(p);
		free(p);
	}
}

int main(void)
{
	int nr = list_ranges();

	truth_begin();
	pairs();
	for (int i = 0; i < nr; i++)
		if (madvise((void *)ranges[i].start, ranges[i].end - ranges[i].start, MADV_DONTNEED))
			return 1;
	pairs();
	expect("allocs %d %d pairs", 2 * NR_PAIRS, NR_PAIRS * (NR_PAIRS + 1));
	return nr > 0 ? 0 : 1;
}

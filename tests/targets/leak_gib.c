/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Loses blocks, of which one contains an address that is a multiple of 1 GiB. jemalloc's threads keep such addresses,
 * for they look up their pages by them.
 */
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>

#include "tests/targets/truth.h"

#define GIB ((uintptr_t)1 << 30)
enum { SIZE = 300000, MAX_BLOCKS = 200, REST = 1 << 20, PROBE = 64 << 20 };

static void *reserve(uintptr_t addr, size_t size)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

	return mmap((void *)addr, size, PROT_NONE, flags, -1, 0);
}

/* The kernel's next mappings lie below each other, and the first ones of them at a multiple of 1 GiB. */
FN static bool go_near(void)
{
	void *probe = reserve(0, PROBE);
	uintptr_t top = (uintptr_t)probe, low = (top & ~(GIB - 1)) + REST;

	if (probe == MAP_FAILED)
		return false;
	if (low > top)
		low -= GIB;
	return reserve(low, top - low) == (void *)low;
}

FN static void *lost_block(size_t size)
{
	return malloc(size);
}

/* The number of blocks; 0 if none lies there. */
FN static long lose(void)
{
	for (long i = 1; i <= MAX_BLOCKS; i++) {
		void *p = lost_block(SIZE);
		uintptr_t first = (uintptr_t)p - 1, last = (uintptr_t)p + SIZE - 1;

		keep(p);
		if (first / GIB != last / GIB)
			return i;
	}
	return 0;
}

int main(void)
{
	long nr;

	truth_begin();
	nr = go_near() ? lose() : 0;
	if (!nr) {
		fputs("no block lies at a multiple of 1 GiB\n", stderr);
		return 1;
	}
	expect("definite %ld %ld lost_block", nr, nr * SIZE);
	fflush(stdout);
	scrub();
	return 0;
}

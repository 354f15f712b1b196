/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Allocations that fail, each in its way; none may leave a block in the books. */
#include "tests/targets/truth.h"

#include <errno.h>
#include <malloc.h>
#include <stdint.h>

#ifndef __GLIBC__
#define pvalloc valloc /* musl has none */
#endif

static int nr_failed;

static void must_fail(void *p)
{
	if (p)
		abort();
	nr_failed++;
}

FN static void too_large(void)
{
	volatile size_t max = SIZE_MAX, half = (size_t)PTRDIFF_MAX + 1,
			root = (size_t)1 << (sizeof(size_t) * 4);

	must_fail(malloc(max));
	must_fail(malloc(half));
	must_fail(calloc(root, root));
	must_fail(calloc(max, 2));
	must_fail(realloc(NULL, max));
	must_fail(reallocarray(NULL, root, root));
	must_fail(memalign(64, max - 4096));
	must_fail(aligned_alloc(64, max - 4096));
	must_fail(valloc(max - 8192));
	must_fail(pvalloc(max - 8192));
}

/* The result is not written: what was there before must not be taken for a block. */
FN static void bad_memalign(void)
{
	char *mine = malloc(10);
	void *out = mine;
	volatile size_t three = 3, huge = SIZE_MAX / 2;

	keep(mine);
	if (posix_memalign(&out, three, 100) != EINVAL || posix_memalign(&out, 0, 100) != EINVAL ||
	    posix_memalign(&out, 64, huge) != ENOMEM || out != mine)
		abort();
	nr_failed += 3;
	expect("calls posix_memalign 3");
	expect("live 1 10 bad_memalign");
}

/* glibc rounds a bad alignment up, others refuse it. */
FN static void odd_alignment(void)
{
	volatile size_t odd = 48;
	void *p = aligned_alloc(odd, 96), *q = memalign(odd, 96);

	keep(p);
	keep(q);
	nr_failed += !p + !q;
	expect("live %d %d odd_alignment", !!p + !!q, (!!p + !!q) * 96);
}

FN static void pages(void)
{
	volatile size_t zero = 0;
	void *p = pvalloc(zero), *q = valloc(100);

	keep(p);
	keep(q);
	expect("live %d 100 pages", !!p + !!q);
}

int main(void)
{
	truth_begin();
	too_large();
	bad_memalign();
	odd_alignment();
	pages();
	expect("live 0 0 too_large");
	expect("failed %d", nr_failed);
	expect("unknown 0");
	return 0;
}

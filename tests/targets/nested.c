/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * nested DEPTH [far]: its own malloc calls itself DEPTH times before it asks the C library's, so that DEPTH calls are
 * under way at once; the kernel follows 64 returns of a thread. far: the C library makes the calls inside, so that each
 * is a request of its own.
 */
#include <dlfcn.h>

#include "tests/targets/truth.h"

static int left, is_far;

FN void *malloc(size_t size)
{
	static void *(*real)(size_t);

	if (!real)
		real = (void *(*)(size_t))dlsym(RTLD_NEXT, "malloc");
	if (left) {
		char *inner;

		left--;
		inner = is_far ? strdup("39 characters, which are as many bytes.") : malloc(size);
		keep(inner);
		if (!is_far)
			return inner;
	}
	return real(size);
}

FN static void *nested_allocates(int depth)
{
	void *p;

	left = depth;
	p = malloc(40);
	keep(p);
	return p;
}

int main(int argc, char **argv)
{
	int depth = argc > 1 ? atoi(argv[1]) : 0;
	void *kept[10];

	truth_begin();
	is_far = argc > 2;
	for (int i = 0; i < 10; i++)
		kept[i] = nested_allocates(depth);
	free(kept[3]);
	printf("requests %d\n", is_far ? 10 * (depth + 1) : 10);
	expect("live 9 360 nested_allocates");
	return 0;
}

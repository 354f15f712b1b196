/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Has its own malloc and free, which ask for the call stack, as profilers and checkers do. Prints how deep they saw it.
 * Without arguments from depth 10; a walk must see the same under a tracer.
 */
#include <dlfcn.h>
#include <execinfo.h>
#include <stdbool.h>

#include "tests/targets/truth.h"

static int nr_at_malloc, nr_at_free;
static bool is_on;

static void *next(const char *name)
{
	return dlsym(RTLD_NEXT, name);
}

static void ask(int *nr)
{
	void *frames[64];

	if (!is_on)
		return;
	is_on = false;
	*nr = backtrace(frames, 64);
	is_on = true;
}

FN void *malloc(size_t size)
{
	static void *(*real)(size_t);

	if (!real)
		real = (void *(*)(size_t))next("malloc");
	ask(&nr_at_malloc);
	return real(size);
}

FN void free(void *p)
{
	static void (*real)(void *);

	if (!real)
		real = (void (*)(void *))next("free");
	ask(&nr_at_free);
	real(p);
}

FN static void deep(int depth)
{
	if (depth)
		deep(depth - 1);
	else
		free(malloc(10));
	keep(depth);
}

int main(void)
{
	void *frames[4];

	backtrace(frames, 4); /* loads what it needs */
	is_on = true;
	deep(10);
	is_on = false;
	printf("malloc saw %d frames, free %d\n", nr_at_malloc, nr_at_free);
	return nr_at_malloc > 10 && nr_at_free > 10 ? 0 : 1;
}

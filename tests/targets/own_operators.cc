/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Operators new and delete of the program's own, which allocate for themselves: a list and a log. */
#include "tests/targets/truth.h"

#include <new>

struct node {
	void *block;
	struct node *next;
};

static struct node *nodes;
static void *logged[64];
static int nr_logged;

FN static void note(size_t size)
{
	char *line = (char *)malloc(12);

	snprintf(line, 12, "%zu", size);
	logged[nr_logged++] = malloc(strlen(line) + 1);
	free(line);
}

FN void *operator new(size_t size)
{
	struct node *n = (struct node *)malloc(sizeof(*n));
	char *block = (char *)malloc(size + 16);

	if (!n || !block)
		throw std::bad_alloc();
	note(size);
	*n = { block + 16, nodes };
	nodes = n;
	return block + 16;
}

FN void operator delete(void *p) noexcept
{
	struct node **at = &nodes, *n;

	while (*at && (*at)->block != p)
		at = &(*at)->next;
	n = *at;
	if (!n)
		abort();
	*at = n->next;
	free(n);
	free((char *)p - 16);
}

FN void operator delete(void *p, size_t) noexcept
{
	operator delete(p);
}

/* Ends by a jump to malloc, after a call of it. */
FN __attribute__((optimize("O2"))) void *operator new(size_t size, const std::nothrow_t &) noexcept
{
	logged[nr_logged++] = malloc(8);
	return malloc(size);
}

FN __attribute__((optimize("O2"))) void operator delete(void *p, const std::nothrow_t &) noexcept
{
	free(p);
}

FN static void single(void)
{
	for (int i = 0; i < 3; i++)
		::operator delete(::operator new(100));
	keep(nodes);
	expect("allocs 12 396 single");
}

/* new[] is that of the library, which asks the operator of the program. */
FN static void arrays(void)
{
	for (int i = 0; i < 2; i++)
		::operator delete[](::operator new[](50));
	expect("allocs 8 162 arrays");
}

FN static void nothrow(void)
{
	for (int i = 0; i < 4; i++)
		::operator delete(::operator new(70, std::nothrow), std::nothrow);
	expect("allocs 8 312 nothrow");
}

FN static void held(void)
{
	void *p = ::operator new(1000);

	keep(p);
	expect("live 2 1016 held");
}

int main(void)
{
	truth_begin();
	single();
	arrays();
	nothrow();
	held();
	expect("calls _Znwm 4");
	expect("calls _Znam 2");
	expect("calls _ZnwmRKSt9nothrow_t 4");
	expect("calls _ZdlPv 3");
	expect("calls _ZdaPv 2");
	expect("calls _ZdlPvRKSt9nothrow_t 4");
	for (int i = 0; i < nr_logged; i++)
		free(logged[i]);
	/* A node or a line in each operator, and the log: not the blocks of the operators. */
	expect("calls malloc %d", 1 + 3 * 6 + 4);
	expect("calls free %d", 5 + 6 + nr_logged);
	expect("failed 0");
	expect("unknown 0");
	return 0;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Releases blocks wrongly, each in a function of its own, and prints "expect wrong KIND COUNT FREER ALLOCATOR". What
 * may end the program comes last, and only one of it: double, inside, stack or realloc as an argument.
 */
#include <cstdint>
#include <new>

#include "tests/targets/truth.h"

FN static char *by_malloc()
{
	return (char *)malloc(40);
}
FN static char *by_new()
{
	return new char;
}
FN static int *by_new_array()
{
	return new int[10];
}

FN static void free_of_new()
{
	char *p = by_new();
	keep(p);
	free(p);
}
FN static void free_of_new_array()
{
	int *p = by_new_array();
	keep(p);
	free(p);
}
FN static void delete_of_malloc()
{
	char *p = by_malloc();
	keep(p);
	delete p;
}
FN static void delete_of_new_array()
{
	int *p = by_new_array();
	keep(p);
	delete p;
}
FN static void delete_array_of_new()
{
	char *p = by_new();
	keep(p);
	delete[] p;
}
FN static void realloc_of_new()
{
	char *p = by_new();
	keep(p);
	p = (char *)realloc(p, 500);
	keep(p);
	free(p);
}

FN static void right_ones()
{
	char *a = by_malloc(), *b = by_new();
	int *c = by_new_array();
	void *d = aligned_alloc(64, 128), *e = operator new(256, std::align_val_t(64)), *f = nullptr;

	if (posix_memalign(&f, 64, 100))
		abort();
	keep(a);
	keep(b);
	keep(c);
	keep(d);
	keep(e);
	keep(f);
	a = (char *)realloc(a, 5000);
	keep(a);
	free(a);
	delete b;
	delete[] c;
	free(d);
	operator delete(e, std::align_val_t(64));
	free(f);
	delete new (std::nothrow) int;
	free(nullptr);
	delete (char *)nullptr;
}

FN static void first_free(char *p)
{
	free(p);
}
FN static void second_free(char *p)
{
	free(p);
}
FN static void free_inside()
{
	char *p = by_malloc();
	keep(p);
	free(p + 16);
}
FN static void free_of_stack()
{
	char here[64];
	char *p = here + 16;
	keep(p);
	free(p);
}
FN static void realloc_of_freed()
{
	char *p = by_malloc();
	keep(p);
	first_free(p);
	p = (char *)realloc(p, 5000);
	keep(p);
}

FN static void double_free()
{
	char *p = by_malloc();

	keep(p);
	first_free(p);
	second_free(p);
}

int main(int argc, char **argv)
{
	const char *last = argc > 1 ? argv[1] : "";

	truth_begin();
	right_ones();
	for (int i = 0; i < 3; i++)
		free_of_new();
	free_of_new_array();
	delete_of_malloc();
	delete_of_new_array();
	delete_array_of_new();
	realloc_of_new();
	expect("wrong mismatched-free 3 free_of_new by_new");
	expect("wrong mismatched-free 1 free_of_new_array by_new_array");
	expect("wrong mismatched-free 1 delete_of_malloc by_malloc");
	expect("wrong mismatched-free 1 delete_of_new_array by_new_array");
	expect("wrong mismatched-free 1 delete_array_of_new by_new");
	expect("wrong mismatched-free 1 realloc_of_new by_new");
	fflush(stdout);
	if (!strcmp(last, "double"))
		double_free();
	if (!strcmp(last, "inside"))
		free_inside();
	if (!strcmp(last, "stack"))
		free_of_stack();
	if (!strcmp(last, "realloc"))
		realloc_of_freed();
	return 0;
}

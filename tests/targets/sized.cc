/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Releases blocks with wrong sizes and alignments, each in a function of its own, and right ones of all kinds. Prints
 * "expect wrong KIND COUNT FREER ALLOCATOR". Nothing is wrong with the argument "right".
 */
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "tests/targets/truth.h"

static volatile int nr_destroyed;

using align = std::align_val_t;

struct base {
	int64_t a;
};
struct derived : base {
	int64_t b[4];
};
struct item { /* an array of them has a cookie */
	~item()
	{
		nr_destroyed++;
	}
	int64_t a[3];
};
struct alignas(64) wide {
	~wide()
	{
		nr_destroyed++;
	}
	char a[64];
};

FN static void *by_new(size_t size)
{
	return operator new(size);
}
FN static void *by_new_array(size_t size)
{
	return operator new[](size);
}
FN static void *by_aligned_new(size_t size)
{
	return operator new(size, align(64));
}
FN static void *by_aligned_array(size_t size)
{
	return operator new[](size, align(64));
}
FN static base *by_derived()
{
	return new derived;
}

/* Wrong sizes. */
FN static void as_base()
{
	base *p = by_derived();
	keep(p);
	delete p;
}
FN static void too_small()
{
	operator delete(by_new(100), (size_t)99);
}
FN static void array_too_large()
{
	operator delete[](by_new_array(100), (size_t)104);
}
FN static void aligned_too_small()
{
	operator delete(by_aligned_new(256), (size_t)64, align(64));
}

/* Wrong alignments. */
FN static void plain_of_aligned()
{
	operator delete(by_aligned_new(128));
}
FN static void aligned_of_plain()
{
	operator delete(by_new(128), align(64));
}
FN static void sized_of_aligned()
{
	operator delete(by_aligned_new(192), (size_t)192);
}
FN static void array_of_aligned()
{
	operator delete[](by_aligned_array(128));
}

FN static void other_alignment()
{
	operator delete(by_aligned_new(160), align(32));
}
FN static void other_sized_alignment()
{
	operator delete[](by_aligned_array(160), (size_t)160, align(128));
}

FN static void right_ones()
{
	item *items = new item[5];
	wide *one = new wide, *some = new wide[3];
	std::vector<std::string> list;

	keep(items);
	keep(one);
	keep(some);
	for (int i = 0; i < 100; i++)
		list.push_back(std::string(i, 'x'));
	delete[] items;
	delete one;
	delete[] some;
	operator delete(by_new(40), (size_t)40);
	operator delete(by_new(40));
	operator delete[](by_new_array(40), (size_t)40);
	operator delete(by_aligned_new(64), (size_t)64, align(64));
	operator delete(by_aligned_new(64), align(64));
	operator delete[](by_aligned_array(64), (size_t)64, align(64));
	operator delete[](by_aligned_array(64), align(64));
	operator delete((void *)nullptr, (size_t)7);
	operator delete(operator new(30, std::nothrow), std::nothrow);
	std::make_shared<derived>();
}

int main(int argc, char **argv)
{
	truth_begin();
	right_ones();
	if (argc > 1 && !strcmp(argv[1], "right"))
		return 0;
	as_base();
	for (volatile int i = 0; i < 3; i++)
		too_small();
	array_too_large();
	aligned_too_small();
	plain_of_aligned();
	aligned_of_plain();
	sized_of_aligned();
	array_of_aligned();
	for (volatile int i = 0; i < 2; i++)
		other_alignment();
	other_sized_alignment();
	expect("wrong size-mismatch 1 as_base by_derived");
	expect("wrong size-mismatch 3 too_small by_new");
	expect("wrong size-mismatch 1 array_too_large by_new_array");
	expect("wrong size-mismatch 1 aligned_too_small by_aligned_new");
	expect("wrong alignment-mismatch 1 plain_of_aligned by_aligned_new");
	expect("wrong alignment-mismatch 1 aligned_of_plain by_new");
	expect("wrong alignment-mismatch 1 sized_of_aligned by_aligned_new");
	expect("wrong alignment-mismatch 1 array_of_aligned by_aligned_array");
	expect("wrong alignment-mismatch 2 other_alignment by_aligned_new");
	expect("wrong alignment-mismatch 1 other_sized_alignment by_aligned_array");
	return 0;
}

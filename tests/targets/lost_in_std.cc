/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Loses memory only through functions of the C++ library and through a wrapper: its own functions are to be named. */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <vector>

using bytes = std::vector<char>;

alignas(bytes) static char place[sizeof(bytes)];

[[gnu::noinline]] static void *own_malloc(size_t size)
{
	void *block = malloc(size);

	memset(block, 1, size);
	return block;
}

[[gnu::noinline]] static void lose_vectors(int nr)
{
	for (int i = 0; i < nr; i++)
		new (place) bytes(8000);
	memset(place, 0, sizeof(place));
}

[[gnu::noinline]] static void lose_by_wrapper(int nr)
{
	for (int i = 0; i < nr; i++)
		*static_cast<char *>(own_malloc(100 + i)) = 2;
}

int main()
{
	lose_vectors(5);
	lose_by_wrapper(3);
	puts("leak 5 x 8000 in lose_vectors");
	puts("leak 303 in 3 in lose_by_wrapper");
}

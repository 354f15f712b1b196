/* SPDX-License-Identifier: GPL-2.0-or-later */
/* operator new that throws, returns NULL, asks its handler, or whose constructor throws. */
#include "tests/targets/truth.h"

#include <cstdint>
#include <new>
#include <stdexcept>

enum { NR_ROUNDS = 20 };

static volatile size_t huge = SIZE_MAX / 2 - 100;
static void *reserve;
static int nr_handled;

FN static int throwing()
{
	int caught = 0;

	for (int i = 0; i < NR_ROUNDS; i++) {
		try {
			void *p = ::operator new(huge);

			keep(p);
		} catch (const std::bad_alloc &) {
			caught++;
		}
	}
	return caught;
}

FN static void nothrow()
{
	for (int i = 0; i < NR_ROUNDS; i++)
		if (::operator new(huge, std::nothrow))
			abort();
}

/* An alignment that is none fails before any allocator is called. Returns how many have failed. */
FN static int nothrow_aligned()
{
	const volatile std::size_t aligns[] = { 0, 64 }, sizes[] = { 32, huge };
	int nr = 0;

	for (int i = 0; i < 2; i++) {
		auto align = static_cast<std::align_val_t>(aligns[i]);

		nr += !::operator new(sizes[i], align, std::nothrow);
		nr += !::operator new[](sizes[i], align, std::nothrow);
	}
	return nr;
}

static void handler()
{
	nr_handled++;
	if (!reserve) {
		std::set_new_handler(nullptr);
		return;
	}
	free(reserve);
	reserve = nullptr;
}

/* The handler frees a block and has it tried again; then it gives up. */
FN static void handled()
{
	reserve = malloc(1000);
	std::set_new_handler(handler);
	try {
		void *p = ::operator new[](huge);

		keep(p);
	} catch (const std::bad_alloc &) {
		return;
	}
	abort();
}

struct bomb {
	char bytes[48];
	FN bomb() { throw std::runtime_error("bomb"); }
};

/* The compiler frees the block when the constructor throws. */
FN static void exploding()
{
	for (int i = 0; i < NR_ROUNDS; i++) {
		try {
			bomb *b = new bomb;

			keep(b);
		} catch (const std::runtime_error &) {
		}
	}
}

FN static void plain()
{
	int *p = new int[10];

	keep(p);
	::operator delete(::operator new(20));
}

int main()
{
	truth_begin();
	if (throwing() != NR_ROUNDS)
		return 1;
	nothrow();
	if (nothrow_aligned() != 4)
		return 1;
	handled();
	exploding();
	plain();
	expect("calls _ZnwmRKSt9nothrow_t %d", NR_ROUNDS);
	expect("live 0 0 throwing");
	expect("live 0 0 nothrow");
	expect("live 0 0 nothrow_aligned");
	expect("live 0 0 handled");
	expect("live 0 0 exploding");
	expect("live 1 40 plain");
	expect("failed %d", NR_ROUNDS * 2 + 4 + 1);
	expect("unknown 0");
	return nr_handled == 2 ? 0 : 1;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* An allocator whose code is chosen when the program starts (STT_GNU_IFUNC): --alloc malloc=my_alloc,free=my_free. */
#include "tests/targets/truth.h"

static char room[4096];
static size_t used;

FN static void *take_small(size_t size)
{
	void *p = room + used;

	used += (size + 15) / 16 * 16;
	return p;
}

FN static void *take_large(size_t size)
{
	return take_small(size + 4096);
}

FN static void give_back(void *p)
{
	keep(p);
}

/* Resolvers run before libc is ready: they must not call anything. */
static void *(*choose_alloc(void))(size_t)
{
	return used ? take_large : take_small;
}

static void (*choose_free(void))(void *)
{
	return give_back;
}

void *my_alloc(size_t size) __attribute__((ifunc("choose_alloc")));
void my_free(void *p) __attribute__((ifunc("choose_free")));

FN static void keep_some(void)
{
	for (int i = 0; i < 3; i++) {
		void *p = my_alloc(40);

		keep(p);
	}
	my_free(my_alloc(8));
}

int main(void)
{
	truth_begin();
	keep_some();
	expect("live 3 120 keep_some");
	expect("calls my_alloc 4");
	expect("calls my_free 1");
	return 0;
}

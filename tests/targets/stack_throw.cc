/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Allocates while exceptions are thrown, pass and are caught, and tells its call chains. */
#include "tests/targets/stack_truth.h"

#define CALL __attribute__((noinline, used))

CALL static void t_allocates(size_t bytes)
{
	ENTER();
	ALLOCATE(bytes);
	LEAVE();
}

/* The destructor runs while an exception passes: the frame of the function that owns the guard is still there. */
struct t_guard {
	unsigned nr = shadow->nr;

	CALL ~t_guard()
	{
		shadow->nr = nr;
		shadow_push("t_guard::~t_guard");
		t_allocates(1);
		shadow_pop();
	}
};

CALL static void t_throws(int n)
{
	ENTER();
	if (n % 3 == 0) {
		/* Room that libstdc++ allocates for an exception of these bytes. */
		shadow_push("*");
		note(128 + sizeof(n));
		shadow_pop();
		throw n;
	}
	t_allocates(n);
	LEAVE();
}

CALL static void t_passes(int n)
{
	ENTER();
	{
		t_guard guard;

		t_throws(n);
		keep(n);
	}
	LEAVE();
}

CALL static void t_large(int n)
{
	volatile char large[70000];

	ENTER();
	large[n] = 1;
	t_passes(n);
	keep(large[n]);
	LEAVE();
}

CALL static int t_catches(int n)
{
	unsigned nr;

	ENTER();
	nr = shadow->nr;
	try {
		t_guard guard;

		t_large(n);
	} catch (int thrown) {
		shadow->nr = nr;
		t_allocates(thrown + 100);
		n = 1000;
	}
	t_allocates(n);
	LEAVE();
	return n;
}

CALL static void t_operators(int n)
{
	int *one;

	ENTER();
	one = new int((note(sizeof(int)), n));
	keep(one);
	delete one;
	one = new int[(note(10 * sizeof(int)), 10)];
	keep(one);
	delete[] one;
	LEAVE();
}

int main()
{
	chains_begin();
	ENTER();
	for (int i = 0; i < 100; i++) {
		t_catches(i);
		t_operators(i);
	}
	chains_print();
	return 0;
}

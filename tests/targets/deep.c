/* SPDX-License-Identifier: GPL-2.0-or-later */
/* deep [LEVELS]: allocates at the bottom of a recursion. */
#include "tests/targets/truth.h"

FN static void *deep_allocates(void)
{
	return malloc(60);
}

FN static void *recurse(long levels)
{
	void *p = levels > 1 ? recurse(levels - 1) : deep_allocates();

	keep(p);
	return p;
}

int main(int argc, char **argv)
{
	truth_begin();
	recurse(arg_or(argc, argv, 1, 30));
	expect("live 1 60 deep_allocates");
	return 0;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Allocations before main and after it: constructors here and in libearly.so, atexit. */
#include "tests/targets/truth.h"

void *early_block(void);

static void *mine, *late;

FN static void *before_main(void)
{
	return malloc(33);
}

__attribute__((constructor)) static void construct(void)
{
	mine = before_main();
}

FN static void after_main(void)
{
	void *p = malloc(44);

	keep(p);
	free(late);
}

FN static void *in_main(void)
{
	return malloc(55);
}

int main(void)
{
	truth_begin();
	if (atexit(after_main))
		return 1;
	late = in_main();
	keep(mine);
	free(early_block());
	expect("calls malloc 5");
	expect("calls free 2");
	expect("live 1 33 before_main");
	expect("live 1 44 after_main");
	expect("live 0 0 in_main");
	expect("allocs 2 66 early_constructor");
	expect("live 1 33 early_constructor");
	expect("unknown 0");
	return 0;
}

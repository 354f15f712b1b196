/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Leaks a block in a function with a symbol of D, and one in an ordinary function that it calls. */
#include "tests/targets/truth.h"

FN static void *plain_node(void)
{
	return malloc(24);
}

FN void *make_node(int size) __asm__("_D4list4Tree8makeNodeMFiZPv");

void *make_node(int size)
{
	void *node = malloc(size);
	void *inner = plain_node();

	keep(inner);
	return node;
}

int main(void)
{
	void *node;

	truth_begin();
	node = make_node(40);
	keep(node);
	return 0;
}

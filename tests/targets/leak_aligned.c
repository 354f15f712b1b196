/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Loses three blocks of aligned_alloc. */
#include <stdlib.h>

#include "tests/targets/truth.h"

FN static void lose(void)
{
	void *p = aligned_alloc(64, 128);

	keep(p);
}

int main(void)
{
	truth_begin();
	for (int i = 0; i < 3; i++)
		lose();
	return 0;
}

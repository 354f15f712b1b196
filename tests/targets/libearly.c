/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A library whose constructor allocates before the program's. */
#include "tests/targets/truth.h"

static void *blocks[2];

void *early_block(void);

FN __attribute__((constructor)) static void early_constructor(void)
{
	for (int i = 0; i < 2; i++) {
		blocks[i] = malloc(33);
		keep(blocks[i]);
	}
}

void *early_block(void)
{
	return blocks[0];
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Loses 40 cycles of two blocks: the older one lies behind the younger one, which gets a place that was free. */
#include "tests/targets/truth.h"

enum { NR_CYCLES = 40, OLD_BYTES = 1000, YOUNG_BYTES = 100 };

struct ring {
	struct ring *other;
};

static struct ring *new_block(size_t size)
{
	struct ring *r = malloc(size);

	memset(r, 0, size);
	return r;
}

FN static struct ring *make_old(void)
{
	struct ring *r = new_block(OLD_BYTES);

	keep(r);
	return r;
}

FN static struct ring *make_young(void)
{
	struct ring *r = new_block(YOUNG_BYTES);

	keep(r);
	return r;
}

FN static void lose_cycle(void *hole)
{
	struct ring *old = make_old(), *young;

	free(hole);
	young = make_young();
	old->other = young;
	young->other = old;
}

int main(void)
{
	void *holes[NR_CYCLES], **kept = holes;

	for (int i = 0; i < NR_CYCLES; i++)
		holes[i] = malloc(YOUNG_BYTES);
	for (int i = 0; i < NR_CYCLES; i++) {
		lose_cycle(holes[i]);
		holes[i] = NULL;
	}
	keep(kept);
	return 0;
}

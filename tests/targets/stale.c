/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A block is lost, but an old pointer to it lies in one that was handed out again and not written yet. */
#include "tests/targets/truth.h"

char **fresh;

FN static void stale_loses(void)
{
	char **holder = malloc(100);

	holder[5] = malloc(200);
	free(holder);
}

FN static void stale_keeps(void)
{
	fresh = malloc(100);
}

int main(void)
{
	stale_loses();
	scrub();
	stale_keeps();
	scrub();
	_exit(0);
}

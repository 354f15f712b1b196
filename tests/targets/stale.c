/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A block is lost, but an old pointer to it lies in one that was handed out again and not written yet. */
#include "tests/targets/truth.h"

char **fresh;

/* No function's frame keeps what an earlier one left there. */
FN static void scrub(void)
{
	volatile char dead[16384];

	for (size_t i = 0; i < sizeof(dead); i++)
		dead[i] = 0;
}

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

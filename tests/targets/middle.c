/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Two blocks of 100 bytes, to whose middle alone pointers lead: possibly leaked. Sleeps until SIGTERM after "ready". */
#include "tests/targets/truth.h"

enum { NR_BLOCKS = 2 };

/* Not static: the compiler would drop what is never read. */
char *middles[NR_BLOCKS];

FN static void point_to_middle(void)
{
	for (int i = 0; i < NR_BLOCKS; i++)
		middles[i] = (char *)malloc(100) + 13;
}

int main(void)
{
	point_to_middle();
	scrub();
	printf("ready\n");
	fflush(stdout);
	pause();
	return 0;
}

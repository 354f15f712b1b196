/* SPDX-License-Identifier: GPL-2.0-or-later */
/* swell BYTES [MS]: forgets a block of BYTES every MS milliseconds (100), until a signal ends it. 0 bytes: it idles. */
#include "tests/targets/truth.h"

#include <time.h>

FN static void swell_forgets(size_t size)
{
	char *p = malloc(size);

	/* Memory that is not touched is not resident. */
	if (p)
		memset(p, 0x5a, size);
	keep(p);
}

int main(int argc, char **argv)
{
	long bytes, ms;
	struct timespec pause;

	truth_begin();
	bytes = arg_or(argc, argv, 1, 4096);
	ms = arg_or(argc, argv, 2, 100);
	pause = (struct timespec){ ms / 1000, ms % 1000 * 1000000 };
	puts("ready");
	fflush(stdout);
	for (;;) {
		if (bytes)
			swell_forgets((size_t)bytes);
		nanosleep(&pause, NULL);
	}
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* swell_threads THREADS: each thread forgets a block of 4,000 bytes every millisecond, until a signal ends it. */
#include "tests/targets/truth.h"

#include <pthread.h>
#include <time.h>
#include <unistd.h>

static void *forget_all(void *arg)
{
	const struct timespec pause = { .tv_nsec = 1000000 };

	for (;;) {
		char *p = malloc(4000);

		/* Memory that is not touched is not resident. */
		if (p)
			memset(p, 0x5a, 4000);
		keep(p);
		nanosleep(&pause, NULL);
	}
	return arg;
}

int main(int argc, char **argv)
{
	truth_begin();
	for (long nr = arg_or(argc, argv, 1, 4); nr > 0; nr--) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, forget_all, NULL))
			return 1;
	}
	puts("ready");
	fflush(stdout);
	for (;;)
		pause();
}

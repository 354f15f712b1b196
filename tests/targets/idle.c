/* SPDX-License-Identifier: GPL-2.0-or-later */
/* idle THREADS: so many threads sleep until SIGTERM; prints "ready" and how many there are. */
#include "tests/targets/truth.h"

#include <pthread.h>

enum { STACK = 64 << 10 };

static void *sleeps(void *arg)
{
	for (;;)
		pause();
	return arg;
}

int main(int argc, char **argv)
{
	int nr = argc > 1 ? atoi(argv[1]) : 1, made = 0;
	pthread_attr_t attr;
	pthread_t thread;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK);
	while (made < nr && !pthread_create(&thread, &attr, sleeps, NULL))
		made++;
	printf("ready %d\n", made);
	fflush(stdout);
	sleeps(NULL);
	return 0;
}

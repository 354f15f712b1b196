/* SPDX-License-Identifier: GPL-2.0-or-later */
/* exec [-t] PROGRAM ARG...: allocates, then becomes another program; -t: from a thread while others run. */
#include "tests/targets/truth.h"

#include <pthread.h>

static char **args;

FN static void before_exec(void)
{
	for (int i = 0; i < 4; i++) {
		void *p = malloc(25);

		keep(p);
	}
}

static void *execute(void *arg)
{
	execvp(args[0], args);
	perror(args[0]);
	_exit(127);
	return arg;
}

static void *wait_for_end(void *arg)
{
	for (;;) {
		free(malloc(9));
		usleep(100);
	}
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	if (argc < 2)
		return 2;
	before_exec();
	args = argv + 1;
	if (strcmp(argv[1], "-t"))
		execute(NULL);
	args++;
	for (int i = 0; i < 50; i++)
		if (pthread_create(&thread, NULL, wait_for_end, NULL))
			return 1;
	if (pthread_create(&thread, NULL, execute, NULL))
		return 1;
	pthread_join(thread, NULL);
	return 1;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * exec_leak [-c|-v|-t] PROGRAM ARG...: loses 3 blocks of 100 bytes, fails to execute a program twice, loses one block
 * of 50 bytes, and becomes PROGRAM. -c, -v: in a child by fork(), or vfork(); it waits for that, and ends. -t: from
 * another thread.
 */
#include "tests/targets/truth.h"

#include <pthread.h>
#include <sys/wait.h>

static char **args;

FN static void lose(int nr, size_t size)
{
	for (int i = 0; i < nr; i++) {
		void *p = malloc(size);

		keep(p);
		p = NULL;
		keep(p);
	}
}

/* The stack below, and registers, may still have the addresses. */
FN static void clean(void)
{
	volatile char room[8192];

	free(malloc(9));
	for (size_t i = 0; i < sizeof(room); i++)
		room[i] = 0;
}

static void *execute(void *arg)
{
	execv(args[0], args);
	_exit(127);
	return arg;
}

int main(int argc, char **argv)
{
	char kind = argc > 1 && argv[1][0] == '-' ? argv[1][1] : 0;
	char *missing[] = { "/", NULL };
	pthread_t thread;
	int status = 0;
	pid_t child;

	args = argv + 1 + (kind != 0);
	if (!*args)
		return 2;
	lose(3, 100);
	clean();
	execv("/none/such", missing);
	execv("/", missing);
	lose(1, 50);
	clean();
	if (kind == 't')
		return pthread_create(&thread, NULL, execute, NULL) || pthread_join(thread, NULL);
	if (kind != 'c' && kind != 'v')
		execute(NULL);
	child = kind == 'c' ? fork() : vfork();
	if (!child)
		execute(NULL);
	return waitpid(child, &status, 0) != child || status;
}

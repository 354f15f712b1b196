/* SPDX-License-Identifier: GPL-2.0-or-later */
/* exitcodes HOW [N]: ends in one of the ways in which programs end, with 5 blocks of 11 bytes in hand. */
#include "tests/targets/truth.h"

#include <pthread.h>
#include <signal.h>

FN static void holds(void)
{
	for (int i = 0; i < 5; i++) {
		void *p = malloc(11);

		keep(p);
	}
}

static void *other(void *arg)
{
	usleep(100000);
	exit((int)(long)arg);
}

/* Freed twice: glibc aborts the program. */
static void free_twice(void)
{
	void *volatile p = malloc(20), *volatile q = malloc(20);

	free(p);
	free(q);
	free(p);
	free(p);
	free(q);
	free(q);
}

static void main_thread_leaves(long n)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, other, (void *)n))
		abort();
	pthread_exit(NULL);
}

static void signal_death(int sig)
{
	signal(sig, SIG_DFL);
	raise(sig);
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "return";
	long n = arg_or(argc, argv, 2, 0);

	truth_begin();
	holds();
	expect("live 5 55 holds");
	fflush(stdout);
	if (!strcmp(how, "exit"))
		exit(n);
	if (!strcmp(how, "_exit"))
		_exit(n);
	if (!strcmp(how, "quick_exit"))
		quick_exit(n);
	if (!strcmp(how, "abort"))
		abort();
	if (!strcmp(how, "signal"))
		signal_death(n);
	if (!strcmp(how, "double-free"))
		free_twice();
	if (!strcmp(how, "pthread_exit"))
		main_thread_leaves(n);
	return n;
}

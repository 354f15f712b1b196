/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * births [THREADS]: makes one child after the other, by fork and by posix_spawn, while threads allocate and a timer
 * sends signals, until SIGTERM. Ends with 1 if a child has not ended as it wants to.
 */
#include "tests/targets/truth.h"

#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>

enum { MAX_THREADS = 16, NR_BLOCKS = 20, FORKED = 7, SPAWNED = 9, ROUND = 20 };

extern char **environ;
static volatile sig_atomic_t is_over, nr_alarms;

static void on_alarm(int sig)
{
	(void)sig;
	nr_alarms++;
}

static void on_term(int sig)
{
	(void)sig;
	is_over = 1;
}

FN static void births_allocates(void)
{
	void *p[NR_BLOCKS];

	for (int i = 0; i < NR_BLOCKS; i++)
		p[i] = malloc(10 + (size_t)i * 37);
	for (int i = 0; i < NR_BLOCKS; i++) {
		keep(p[i]);
		free(p[i]);
	}
}

static void *allocate(void *arg)
{
	while (!is_over) {
		births_allocates();
		usleep(500);
	}
	return arg;
}

/* Has @pid ended with @code? */
static int has_ended(pid_t pid, int code)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		;
	if (WIFEXITED(status) && WEXITSTATUS(status) == code)
		return 1;
	fprintf(stderr, "child %d: status %x\n", (int)pid, (unsigned int)status);
	return 0;
}

static int fork_child(void)
{
	pid_t pid = fork();

	if (pid)
		return has_ended(pid, FORKED);
	births_allocates();
	free(malloc(100));
	_exit(FORKED);
}

static int spawn_child(char *name)
{
	char child[] = "child", *argv[] = { name, child, NULL };
	pid_t pid;

	return !posix_spawn(&pid, "/proc/self/exe", NULL, NULL, argv, environ) && has_ended(pid, SPAWNED);
}

int main(int argc, char **argv)
{
	const struct itimerval often = { { 0, 2000 }, { 0, 2000 } };
	pthread_t threads[MAX_THREADS];
	int is_good = 1;
	long nr, births = 0;

	if (argc > 1 && !strcmp(argv[1], "child")) {
		births_allocates();
		return SPAWNED;
	}
	nr = arg_or(argc, argv, 1, 4);
	signal(SIGALRM, on_alarm);
	signal(SIGTERM, on_term);
	for (long i = 0; i < nr && i < MAX_THREADS; i++)
		if (pthread_create(&threads[i], NULL, allocate, NULL))
			abort();
	if (setitimer(ITIMER_REAL, &often, NULL))
		abort();
	puts("ready");
	while (!is_over) {
		is_good &= fork_child();
		is_good &= spawn_child(argv[0]);
		if (++births % ROUND == 0)
			puts("born");
		fflush(stdout);
		usleep(500);
	}
	for (long i = 0; i < nr && i < MAX_THREADS; i++)
		pthread_join(threads[i], NULL);
	return !is_good;
}

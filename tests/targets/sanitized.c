/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Loses blocks or not, in threads and children too, for builds with LeakSanitizer: clean|leak|threads|fork. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { KEPT = 50, LOST = 123, NR_LOST = 3, NR_THREADS = 4, STATUS = 7 };

void *keep;
static pthread_barrier_t all_made, never;

__attribute__((noinline)) static void *make(size_t size)
{
	return malloc(size);
}

__attribute__((noinline)) static void lose(void)
{
	for (int i = 0; i < NR_LOST; i++) {
		void *volatile p = make(LOST);

		p = NULL;
		(void)p;
	}
}

__attribute__((noinline)) static void wipe_stack(void)
{
	volatile char old[4096];

	for (size_t i = 0; i < sizeof(old); i++)
		old[i] = 0;
}

/* Runs on, and holds a block, when the program ends. */
static void *stay(void *arg)
{
	void *volatile mine = malloc(KEPT);

	pthread_barrier_wait(&all_made);
	pthread_barrier_wait(&never);
	return mine ? arg : NULL;
}

static void start_threads(void)
{
	pthread_t thread;

	pthread_barrier_init(&all_made, NULL, NR_THREADS + 1);
	pthread_barrier_init(&never, NULL, NR_THREADS + 1);
	for (int i = 0; i < NR_THREADS; i++)
		pthread_create(&thread, NULL, stay, NULL);
	pthread_barrier_wait(&all_made);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "clean";
	int status = 0;

	keep = malloc(KEPT);
	printf("begins: %s\n", what);
	fflush(stdout);
	if (!strcmp(what, "fork")) {
		pid_t child = fork();

		if (child > 0)
			waitpid(child, &status, 0);
		printf("%s: %d\n", child ? "child" : "I am the child", WEXITSTATUS(status));
	}
	if (!strcmp(what, "threads"))
		start_threads();
	if (strcmp(what, "clean"))
		lose();
	wipe_stack();
	printf("ends\n"); /* stays in the buffer until exit() */
	return STATUS;
}

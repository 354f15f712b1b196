/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tree [hidden]: children made in every way, while other threads allocate; each of them allocates, too, and must end
 * well. Hidden ones are made by CLONE_UNTRACED, so that no tracer is told of them.
 */
#include "tests/targets/truth.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

enum { ROUNDS = 20, NR_THREADS = 3, STACK_BYTES = 256 * 1024 };

extern char **environ;
static volatile int is_over;

static void use_heap(void)
{
	for (int i = 0; i < 20; i++) {
		void *p = malloc(40);

		keep(p);
		free(p);
	}
}

static void *allocate(void *arg)
{
	while (!is_over)
		use_heap();
	return arg;
}

static int in_copy(void *arg)
{
	(void)arg;
	use_heap();
	return 7;
}

/* A process that shares the memory, but not the thread group: its calls are the program's. */
static int in_same_memory(void *arg)
{
	(void)arg;
	return 7;
}

/* The maker waits meanwhile, because this child uses the data of its thread, too. */
static int in_same_heap(void *arg)
{
	(void)arg;
	use_heap();
	return 7;
}

static void wait_for(pid_t pid, int flags)
{
	int status;

	if (pid < 0 || waitpid(pid, &status, flags) != pid || !WIFEXITED(status) || WEXITSTATUS(status) != 7)
		_exit(1);
}

static void by_fork(void)
{
	pid_t pid = fork();

	if (!pid)
		_exit(in_copy(NULL));
	wait_for(pid, 0);
}

static void by_vfork(void)
{
	pid_t pid = vfork();

	if (!pid) {
		execl("/bin/sh", "sh", "-c", "exit 7", (char *)NULL);
		_exit(1);
	}
	wait_for(pid, 0);
}

static void by_spawn(void)
{
	char *args[] = { "sh", "-c", "exit 7", NULL };
	pid_t pid;

	if (posix_spawn(&pid, "/bin/sh", NULL, NULL, args, environ))
		_exit(1);
	wait_for(pid, 0);
}

static void by_clone(int (*fn)(void *), int flags)
{
	static _Alignas(16) char stack[STACK_BYTES];

	wait_for(clone(fn, stack + STACK_BYTES, flags, NULL), __WALL);
}

static void by_hidden_clone(int flags)
{
	flags |= CLONE_UNTRACED;
	by_clone(in_copy, flags);
	by_clone(in_same_heap, flags | CLONE_VM);
	by_clone(in_same_heap, flags | CLONE_VM | CLONE_VFORK);
}

int main(int argc, char **argv)
{
	int is_hidden = argc > 1 && !strcmp(argv[1], "hidden");
	pthread_t threads[NR_THREADS];

	truth_begin();
	for (int i = 0; i < NR_THREADS; i++)
		if (pthread_create(&threads[i], NULL, allocate, NULL))
			return 1;
	for (int i = 0; i < ROUNDS; i++) {
		by_fork();
		by_vfork();
		by_spawn();
		by_clone(in_copy, SIGCHLD);
		by_clone(in_copy, 0);
		by_clone(in_same_memory, CLONE_VM | SIGCHLD);
		by_clone(in_same_memory, CLONE_VM);
		if (is_hidden) {
			by_hidden_clone(SIGCHLD);
			by_hidden_clone(0);
		}
	}
	is_over = 1;
	for (int i = 0; i < NR_THREADS; i++)
		pthread_join(threads[i], NULL);
	printf("done\n");
	return 0;
}

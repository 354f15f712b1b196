/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * exec_leak [-LETTERS] PROGRAM ARG...: loses 3 blocks of 100 bytes, fails to execute a program twice, loses one block
 * of 50 bytes, and becomes PROGRAM. w: it says "ready" first, and waits for a line. c, v: in a child by fork() or
 * vfork(), for which it waits. t: from another thread. f, a, s: by fexecve(), execveat() or a bare system call.
 */
#include "tests/targets/truth.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* Not all C libraries have it. */
extern int execveat(int dir, const char *path, char *const argv[], char *const env[], int flags)
	__attribute__((weak));

static char **args;
static const char *letters = "";

static int has(char letter)
{
	return strchr(letters, letter) != NULL;
}

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
	if (has('f'))
		fexecve(open(args[0], O_RDONLY | O_CLOEXEC), args, environ);
	else if (has('a') && execveat)
		execveat(AT_FDCWD, args[0], args, environ, 0);
	else if (has('s'))
		syscall(SYS_execve, args[0], args, environ);
	else
		execv(args[0], args);
	_exit(127);
	return arg;
}

int main(int argc, char **argv)
{
	char *missing[] = { "/", NULL }, line[8];
	pthread_t thread;
	int status = 0;
	pid_t child;

	letters = argc > 1 && argv[1][0] == '-' ? argv[1] + 1 : "";
	args = argv + 1 + (*letters != 0);
	if (!*args)
		return 2;
	if (has('w') && (write(1, "ready\n", 6) != 6 || read(0, line, sizeof(line)) < 1))
		return 3;
	lose(3, 100);
	clean();
	execv("/none/such", missing);
	execv("/", missing);
	lose(1, 50);
	clean();
	if (has('t'))
		return pthread_create(&thread, NULL, execute, NULL) || pthread_join(thread, NULL);
	if (!has('c') && !has('v'))
		execute(NULL);
	child = has('c') ? fork() : vfork();
	if (!child)
		execute(NULL);
	return waitpid(child, &status, 0) != child || status;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sharers [vfork|clone]: a child in this memory, that this waits for or goes on beside, allocates and frees there.
 * sharers handed: like vfork, and this frees a block of the child.
 * sharers exec: it does so when this has executed another program, and has that memory to itself.
 */
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <sys/wait.h>

#include "tests/targets/truth.h"

enum { STACK_BYTES = 1 << 16 };

static void *of_parent, *of_child;

FN static void parent_allocates(void)
{
	of_parent = malloc(80);
	keep(of_parent);
}

FN static void sharer_allocates(void)
{
	for (int i = 0; i < 4; i++) {
		void *p = malloc(20);

		keep(p);
	}
	of_child = malloc(20);
	free(of_parent);
}

static int sharer(void *arg)
{
	(void)arg;
	sharer_allocates();
	_exit(0);
}

static int ends[2]; /* of a pipe: its end tells the child that the parent is another program */

static int heir(void *arg)
{
	char c;

	(void)arg;
	close(ends[1]);
	if (read(ends[0], &c, 1))
		_exit(1);
	for (int i = 0; i < 1000; i++) {
		void *p = malloc(20);

		keep(p);
		free(p);
	}
	_exit(5);
}

static int leave_memory(void *stack)
{
	if (pipe2(ends, O_CLOEXEC) || clone(heir, stack, CLONE_VM | SIGCHLD, NULL) < 0)
		return 1;
	execl("/proc/self/exe", "sharers", "wait", NULL);
	return 1;
}

static int wait_for_heir(void)
{
	int status;

	return wait(&status) < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 5;
}

int main(int argc, char **argv)
{
	static char stack[STACK_BYTES] __attribute__((aligned(16)));
	bool is_handed = argc > 1 && !strcmp(argv[1], "handed");
	int flags = is_handed || (argc > 1 && !strcmp(argv[1], "vfork")) ? CLONE_VFORK : 0;
	int status;

	if (argc > 1 && !strcmp(argv[1], "wait"))
		return wait_for_heir();
	if (argc > 1 && !strcmp(argv[1], "exec"))
		return leave_memory(stack + sizeof(stack));
	truth_begin();
	parent_allocates();
	if (clone(sharer, stack + sizeof(stack), CLONE_VM | SIGCHLD | flags, NULL) < 0)
		return 1;
	if (wait(&status) < 0 || status)
		return 1;
	expect("calls malloc 6");
	if (is_handed)
		free(of_child);
	expect("calls free %d", 1 + is_handed);
	expect("live 0 0 parent_allocates");
	expect("live %d %d sharer_allocates", 5 - is_handed, 100 - 20 * is_handed);
	expect("unknown 0");
	return 0;
}

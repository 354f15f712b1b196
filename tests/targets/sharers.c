/* SPDX-License-Identifier: GPL-2.0-or-later */
/* sharers [vfork|clone]: a child in this memory, that this waits for or goes on beside, allocates and frees there. */
#include <sched.h>
#include <sys/wait.h>

#include "tests/targets/truth.h"

enum { STACK_BYTES = 1 << 16 };

static void *of_parent;

FN static void parent_allocates(void)
{
	of_parent = malloc(80);
	keep(of_parent);
}

FN static void sharer_allocates(void)
{
	for (int i = 0; i < 5; i++) {
		void *p = malloc(20);

		keep(p);
	}
	free(of_parent);
}

static int sharer(void *arg)
{
	(void)arg;
	sharer_allocates();
	_exit(0);
}

int main(int argc, char **argv)
{
	static char stack[STACK_BYTES] __attribute__((aligned(16)));
	int flags = argc > 1 && !strcmp(argv[1], "vfork") ? CLONE_VFORK : 0;
	int status;

	truth_begin();
	parent_allocates();
	if (clone(sharer, stack + sizeof(stack), CLONE_VM | SIGCHLD | flags, NULL) < 0)
		return 1;
	if (wait(&status) < 0 || status)
		return 1;
	expect("calls malloc 6");
	expect("calls free 1");
	expect("live 0 0 parent_allocates");
	expect("live 5 100 sharer_allocates");
	expect("unknown 0");
	return 0;
}

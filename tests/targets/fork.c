/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fork [CHILDREN [1]]: children with a copy of the heap free inherited blocks and leak their own. With 1 none of them
 * ends before all were made.
 */
#include "tests/targets/truth.h"

#include <sys/wait.h>

static void *inherited;

FN static void parent_allocates(void)
{
	inherited = malloc(80);
	for (int i = 0; i < 2; i++) {
		void *p = malloc(80);

		keep(p);
	}
}

FN static void child_allocates(void)
{
	for (int i = 0; i < 7; i++) {
		void *p = malloc(15);

		keep(p);
	}
	free(inherited);
}

/* @all_made: the parent closes it when all children were made; NULL = nobody waits. */
static void start_child(const int *all_made)
{
	pid_t pid = fork();
	char c;

	if (pid < 0)
		abort();
	if (pid)
		return;
	child_allocates();
	if (all_made) {
		close(all_made[1]);
		if (read(all_made[0], &c, 1))
			abort();
	}
	_exit(0);
}

int main(int argc, char **argv)
{
	long children = arg_or(argc, argv, 1, 3);
	int status, all_made[2];

	truth_begin();
	if (pipe(all_made))
		abort();
	parent_allocates();
	for (long i = 0; i < children; i++)
		start_child(arg_or(argc, argv, 2, 0) ? all_made : NULL);
	close(all_made[1]);
	if (!vfork())
		_exit(0);
	while (wait(&status) > 0)
		if (status)
			return 1;
	expect("calls malloc 3");
	expect("calls free 0");
	expect("live 3 240 parent_allocates");
	expect("live 0 0 child_allocates");
	expect("unknown 0");
	return 0;
}

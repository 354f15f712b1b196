/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * vforked: its first thread waits in vfork(), where no signal reaches it, until a line comes on stdin. "children": it
 * makes such children without an end, and they call _exit().
 */
#include "tests/targets/truth.h"

#include <pthread.h>
#include <sys/wait.h>

static void *allocates_on(void *arg)
{
	for (;;) {
		void *p = malloc(33);

		keep(p);
		free(p);
		usleep(1000);
	}
	return arg;
}

FN static void wait_in_vfork(void)
{
	char byte;
	pid_t pid = vfork();

	if (!pid)
		_exit(read(STDIN_FILENO, &byte, 1) != 1);
	waitpid(pid, NULL, 0);
}

/* One block is live at each moment. */
static void make_children(void)
{
	static void *volatile held;

	for (;;) {
		void *p = malloc(33);
		pid_t pid = vfork();

		if (!pid)
			_exit(0);
		waitpid(pid, NULL, 0);
		free(held);
		held = p;
		usleep(1000);
	}
}

int main(int argc, char **argv)
{
	pthread_t thread;
	int go_on = 10;

	truth_begin();
	if (argc > 1 && !strcmp(argv[1], "children"))
		make_children();
	if (pthread_create(&thread, NULL, allocates_on, NULL))
		return 1;
	puts("ready");
	fflush(stdout);
	wait_in_vfork();
	while (go_on--)
		usleep(1000);
	puts("went on");
	return 0;
}

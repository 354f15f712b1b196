/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sisters FILE: once there is FILE.first, 16 children that end as soon as there is FILE.second, when the process makes
 * one more, which allocates ten blocks. Prints the PIDs of all.
 */
#include "tests/targets/truth.h"

#include <sys/wait.h>

enum { NR_SISTERS = 16, NR_BLOCKS = 10 };

static void await(const char *file, const char *ending)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s.%s", file, ending);
	while (access(path, F_OK))
		usleep(1000);
}

int main(int argc, char **argv)
{
	pid_t pids[NR_SISTERS];

	if (argc < 2)
		return 1;
	truth_begin();
	await(argv[1], "first");
	for (int i = 0; i < NR_SISTERS; i++) {
		pids[i] = fork();
		if (pids[i])
			continue;
		await(argv[1], "second");
		_exit(0);
	}
	for (int i = 0; i < NR_SISTERS; i++)
		printf("%d\n", pids[i]);
	fflush(stdout);
	await(argv[1], "second");
	if (!fork()) {
		for (int i = 0; i < NR_BLOCKS; i++) {
			void *p = malloc(100);

			keep(p);
		}
		_exit(0);
	}
	while (wait(NULL) > 0)
		;
	return 0;
}

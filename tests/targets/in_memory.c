/* SPDX-License-Identifier: GPL-2.0-or-later */
/* in_memory PROGRAM ARG...: becomes a copy of the program that lies in memory only. */
#include <fcntl.h>
#include <sys/mman.h>

#include "tests/targets/truth.h"

int main(int argc, char **argv, char **env)
{
	static char buf[65536];
	int to = memfd_create("in memory (x)", MFD_CLOEXEC), from;
	ssize_t n;

	if (argc < 2 || to < 0)
		return 77;
	from = open(argv[1], O_RDONLY | O_CLOEXEC);
	while ((n = read(from, buf, sizeof(buf))) > 0)
		if (write(to, buf, n) != n)
			return 1;
	fexecve(to, argv + 1, env);
	perror("fexecve");
	return 1;
}

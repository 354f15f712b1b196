/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Allocates blocks by their roles, and says at the end what their verdicts must be. */
#include "tests/verdicts/roles.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum role { LEADER, BEHIND, MAYBE, HELD, NR_ROLES };

static const struct {
	const char *name, *verdict;
} roles[NR_ROLES] = {
	{ "leader", "definite" }, { "behind", "indirect" }, { "maybe", "possible" }, { "held", "reachable" }
};
static long nr_blocks[NR_ROLES], nr_bytes[NR_ROLES];

static size_t count(enum role role, size_t size)
{
	nr_blocks[role]++;
	nr_bytes[role] += (long)size;
	return size;
}

FN void *leader(size_t size)
{
	return calloc(1, count(LEADER, size));
}

FN void *behind(size_t size)
{
	return calloc(1, count(BEHIND, size));
}

FN void *maybe(size_t size)
{
	return calloc(1, count(MAYBE, size));
}

FN void *held(size_t size)
{
	return calloc(1, count(HELD, size));
}

void count_leader(size_t size)
{
	count(LEADER, size);
}

void count_behind(size_t size)
{
	count(BEHIND, size);
}

FN void scrub(void)
{
	volatile char dead[16384];

	for (size_t i = 0; i < sizeof(dead); i++)
		dead[i] = 0;
}

int build_shape(const struct shape *shapes, size_t nr, int argc, char **argv)
{
	static char out[4096];

	setvbuf(stdout, out, _IOFBF, sizeof(out));
	for (size_t i = 0; i < nr; i++) {
		if (argc < 2)
			puts(shapes[i].name);
		if (argc < 2 || strcmp(shapes[i].name, argv[1]) != 0)
			continue;
		shapes[i].build();
		scrub();
		for (int k = 0; k < NR_ROLES; k++)
			if (nr_blocks[k])
				printf("expect %s %ld %ld %s\n", roles[k].verdict, nr_blocks[k], nr_bytes[k],
				       roles[k].name);
		fflush(stdout);
		return 0;
	}
	return argc < 2 ? 0 : 2;
}

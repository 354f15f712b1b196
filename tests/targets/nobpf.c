/* SPDX-License-Identifier: GPL-2.0-or-later */
/* nobpf ENOSYS|EPERM all|bpf|perf|link PROGRAM [ARG...]: run PROGRAM as on a machine without these system calls. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/filter.h"

static const struct {
	const char *name;
	int what;
} kinds[] = {
	{ "all", FILTER_BPF | FILTER_PERF },
	{ "bpf", FILTER_BPF },
	{ "perf", FILTER_PERF },
	{ "link", FILTER_LINK | FILTER_PERF },
};

int main(int argc, char **argv)
{
	int what = 0, err;

	for (size_t i = 0; argc > 3 && i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strcmp(argv[2], kinds[i].name))
			what = kinds[i].what;
	if (!what || (strcmp(argv[1], "ENOSYS") != 0 && strcmp(argv[1], "EPERM") != 0)) {
		fprintf(stderr, "usage: nobpf ENOSYS|EPERM all|bpf|perf|link PROGRAM [ARG...]\n");
		return 99;
	}
	err = filter_install(what, strcmp(argv[1], "EPERM") == 0 ? EPERM : ENOSYS);
	if (err) {
		fprintf(stderr, "nobpf: cannot install the filter: %s\n", strerror(-err));
		return 99;
	}
	execvp(argv[3], argv + 3);
	fprintf(stderr, "nobpf: %s: %s\n", argv[3], strerror(errno));
	return errno == ENOENT ? 127 : 126;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The name by which the user knows a program: redis-server for the link that leads to redis-check-rdb. */
#include "user/target/program_link.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "user/lib/cleanup.h"
#include "user/lib/path.h"
#include "user/lib/proc.h"

/* Is @path, as the process sees it, the file that the process executes? */
static bool is_program(pid_t pid, const char *path)
{
	char exe[32], seen[PATH_MAX + 32];
	struct stat a, b;

	pid_t reader = proc_reader(pid);

	snprintf(exe, sizeof(exe), "/proc/%d/exe", reader);
	snprintf(seen, sizeof(seen), "/proc/%d/root%s", reader, path);
	return !stat(exe, &a) && !stat(seen, &b) && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/* @name in the directory of the program @exe, if it is a link to it. */
static int try_beside(char **out, pid_t pid, const char *exe, const char *name)
{
	auto_free char *path = NULL;

	if (!*name || strchr(name, '/') || !strcmp(name, path_name(exe)))
		return 0;
	if (asprintf(&path, "%.*s%s", (int)(path_name(exe) - exe), exe, name) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	if (strlen(path) < PATH_MAX && is_program(pid, path))
		*out = take_ptr(path);
	return 0;
}

int program_link(char **out, pid_t pid, const char *exe, const char *comm)
{
	char argv0[PATH_MAX];
	int err;

	*out = NULL;
	if (exe[0] != '/')
		return 0;
	if (proc_argv0(argv0, sizeof(argv0), pid))
		argv0[0] = '\0';
	if (argv0[0] == '/' && strcmp(path_name(argv0), path_name(exe)) && is_program(pid, argv0)) {
		*out = strdup(argv0);
		return *out ? 0 : -ENOMEM;
	}
	err = try_beside(out, pid, exe, path_name(argv0));
	return err || *out ? err : try_beside(out, pid, exe, comm);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The kernel gives limits of other users' processes to CAP_SYS_RESOURCE only, but everyone may read their file. */
#include "user/lib/proc_limit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "user/lib/cleanup.h"

/* Lines of /proc/PID/limits (Linux, fs/proc/base.c): the name, the soft limit, the hard limit, the unit. */
static const struct {
	int resource;
	const char *name;
} names[] = {
	{ RLIMIT_AS, "Max address space " },
	{ RLIMIT_DATA, "Max data size " },
	{ RLIMIT_FSIZE, "Max file size " },
};

static const char *proc_limit_name_of(int resource)
{
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (names[i].resource == resource)
			return names[i].name;
	return NULL;
}

/* "unlimited" is no number. */
static u64 limit_in(const char *text)
{
	char *end;
	u64 limit = strtoull(text, &end, 10);

	return end == text ? UINT64_MAX : limit;
}

static u64 read_limit(pid_t pid, const char *name)
{
	char path[32], line[128];
	auto_fclose FILE *f = NULL;

	snprintf(path, sizeof(path), "/proc/%d/limits", pid);
	f = fopen(path, "re");
	while (name && f && fgets(line, sizeof(line), f))
		if (!strncmp(line, name, strlen(name)))
			return limit_in(line + strlen(name));
	return UINT64_MAX;
}

u64 proc_limit(pid_t pid, int resource)
{
	struct rlimit limit;

	if (prlimit(pid, (__rlimit_resource_t)resource, NULL, &limit))
		return errno == EPERM ? read_limit(pid, proc_limit_name_of(resource)) : UINT64_MAX;
	return limit.rlim_cur == RLIM_INFINITY ? UINT64_MAX : limit.rlim_cur;
}

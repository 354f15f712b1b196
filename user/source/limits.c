/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Resource limits, raised for heaptap and put back for the programs that it starts. */
#include "user/source/limits.h"

#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

/* Static, because limits belong to the process. The index is the resource. */
static struct {
	bool is_raised;
	struct rlimit before;
} limits[RLIM_NLIMITS];

static bool keep(int resource)
{
	if (!limits[resource].is_raised)
		limits[resource].is_raised = !getrlimit(resource, &limits[resource].before);
	return limits[resource].is_raised;
}

void limits_raise(int resource, rlim_t wanted)
{
	struct rlimit limit;

	if (getrlimit(resource, &limit) || limit.rlim_cur >= wanted || !keep(resource))
		return;
	limit.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
	setrlimit(resource, &limit);
}

void limits_lift(int resource)
{
	const struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };

	if (keep(resource) && setrlimit(resource, &limit))
		limits_raise(resource, RLIM_INFINITY);
}

bool limits_has_files(unsigned int nr)
{
	struct rlimit limit;
	int fd;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur > INT_MAX)
		return true;
	if (limit.rlim_cur < nr)
		return false;
	/* The kernel gives out the lowest free number: those below are taken, those above are free. */
	fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		return false;
	close(fd);
	return (rlim_t)fd + nr <= limit.rlim_cur;
}

void limits_restore(int resource)
{
	if (limits[resource].is_raised)
		setrlimit(resource, &limits[resource].before);
	limits[resource].is_raised = false;
}

void limits_restore_all(void)
{
	for (int i = 0; i < RLIM_NLIMITS; i++)
		limits_restore(i);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Resource limits, changed for heaptap and put back for the programs that it starts. */
#include "user/source/limits.h"

#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#include "user/lib/types.h"

/* Of the CPU time that is allowed, a fifth is for the report, and at most so much. */
enum { CPU_PARTS = 5, CPU_LEFT_MAX_S = 10 };

/* Static, because limits belong to the process. The index is the resource. */
static struct {
	bool is_changed;
	struct rlimit before;
} limits[RLIM_NLIMITS];

static bool limits_keep(int resource)
{
	if (!limits[resource].is_changed)
		limits[resource].is_changed = !getrlimit(resource, &limits[resource].before);
	return limits[resource].is_changed;
}

void limits_raise(int resource, rlim_t wanted)
{
	struct rlimit limit;

	if (getrlimit(resource, &limit) || limit.rlim_cur >= wanted || !limits_keep(resource))
		return;
	limit.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
	setrlimit(resource, &limit);
}

void limits_lift(int resource)
{
	const struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };

	if (limits_keep(resource) && setrlimit(resource, &limit))
		limits_raise(resource, RLIM_INFINITY);
}

void limits_leave_cpu_time(void)
{
	struct rlimit limit;
	rlim_t left;

	if (getrlimit(RLIMIT_CPU, &limit) || limit.rlim_max == RLIM_INFINITY || limit.rlim_max < 2)
		return;
	left = limit.rlim_max / CPU_PARTS;
	left = left < 1 ? 1 : left > CPU_LEFT_MAX_S ? CPU_LEFT_MAX_S : left;
	if (limit.rlim_cur <= limit.rlim_max - left || !limits_keep(RLIMIT_CPU))
		return;
	limit.rlim_cur = limit.rlim_max - left;
	setrlimit(RLIMIT_CPU, &limit);
}

/* Static, because the limit belongs to the process. */
static u32 is_out_of_cpu_time;

bool limits_note_out_of_cpu_time(void)
{
	return !__atomic_exchange_n(&is_out_of_cpu_time, 1, __ATOMIC_ACQ_REL);
}

bool limits_is_out_of_cpu_time(void)
{
	return __atomic_load_n(&is_out_of_cpu_time, __ATOMIC_ACQUIRE);
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
	if (limits[resource].is_changed)
		setrlimit(resource, &limits[resource].before);
	limits[resource].is_changed = false;
}

void limits_restore_all(void)
{
	for (int i = 0; i < RLIM_NLIMITS; i++)
		limits_restore(i);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A process at execve() is stopped by the thread that heard of it: a new one may get no CPU while that wait lasts. */
#include "user/source/exec_wait.h"

#include "user/lib/clock.h"

enum { STOP_NS = 1000 * 1000 * 1000 };

bool exec_wait_stop(struct stopped_threads *all, pid_t pid)
{
	*all = (struct stopped_threads){ .pid = pid, .by = STOP_BY_US };
	return !stop_all_begin(all, clock_now_ns() + STOP_NS) && !stop_all_running(all);
}

void exec_wait_end(struct stopped_threads *all)
{
	if (all->nr)
		stop_all_end(all);
}

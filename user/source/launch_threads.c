/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Threads of a program that heaptap starts: stopped, resumed, and found at the program's end. */
#include "user/source/launch_threads.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arch/tracee.h"
#include "arch/stop.h"
#include "user/lib/cleanup.h"
#include "user/lib/clock.h"
#include "user/lib/proc.h"

enum { POLL_NS = 50 * 1000 };

u32 launch_threads_count(pid_t pid)
{
	struct proc_stat stat;

	return proc_read_stat(&stat, pid) ? 0 : stat.nr_threads;
}

bool launch_threads_have(pid_t pid, pid_t tid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d", pid, tid);
	return tid == pid || !access(path, F_OK);
}

static pid_t find_exiting(pid_t pid)
{
	auto_free pid_t *tids = NULL;
	size_t nr = 0;

	if (proc_threads(pid, &tids, &nr))
		return 0;
	for (size_t i = 0; i < nr; i++)
		if (stop_is_there(tids[i]) && tracee_call(tids[i]) == TRACEE_CALL_EXITS_ALL)
			return tids[i];
	return 0;
}

pid_t launch_threads_exiting(pid_t pid, u64 end_ns)
{
	pid_t tid;

	while (!(tid = find_exiting(pid)) && clock_pause(POLL_NS, end_ns))
		;
	return tid;
}

bool launch_threads_await(pid_t tid, u64 max_ns, int *status)
{
	u64 end_ns = clock_now_ns() + max_ns;
	pid_t seen;

	while (!(seen = waitpid(tid, status, __WALL | WNOHANG)) && clock_pause(POLL_NS, end_ns))
		;
	return seen == tid && WIFSTOPPED(*status);
}

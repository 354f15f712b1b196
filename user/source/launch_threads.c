/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Threads of a program that heaptap starts: stopped, resumed, and found at the program's end. */
#include "user/source/launch_threads.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arch/tracee.h"
#include "fallback/program.h"
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

static bool is_dead(pid_t tid)
{
	struct proc_stat stat;

	return proc_read_stat(&stat, tid) || stat.state == 'Z' || stat.state == 'X';
}

/* Count threads of process @pid that are not stopped. @is_asking: ask them to stop. -errno. */
static int count_running(pid_t pid, bool is_asking)
{
	auto_free pid_t *tids = NULL;
	size_t nr = 0;
	int running = 0;
	int err = proc_threads(pid, &tids, &nr);

	for (size_t i = 0; !err && i < nr; i++) {
		if (stop_is_there(tids[i]) || is_dead(tids[i]))
			continue;
		running++;
		if (is_asking)
			ptrace(PTRACE_INTERRUPT, tids[i], 0, 0);
	}
	return err ? err : running;
}

int launch_threads_stop(pid_t pid, u64 end_ns, bool is_asking)
{
	int running;

	while ((running = count_running(pid, is_asking)) > 0)
		if (!clock_pause(POLL_NS, end_ns))
			return -ETIME;
	return running;
}

void launch_threads_resume(pid_t pid, const struct program *program)
{
	auto_free pid_t *tids = NULL;
	size_t nr = 0;

	if (proc_threads(pid, &tids, &nr))
		return;
	for (size_t i = 0; i < nr; i++) {
		siginfo_t si = { .si_pid = 0 };
		int status;

		if (waitid(P_PID, tids[i], &si, WSTOPPED | WNOHANG | WNOWAIT | __WALL) || !si.si_pid ||
		    si.si_status != (PTRACE_EVENT_STOP << 8 | SIGTRAP))
			continue;
		if (waitpid(tids[i], &status, WNOHANG | __WALL) == tids[i])
			stop_end(tids[i], STOP_ASKED, program_resume_request(program, pid, tids[i]), 0);
	}
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

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A system call that a thread of a held program carries out. If heaptap is killed meanwhile, the program goes on. */
#include <errno.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "arch/thread_call.h"
#include "arch/stop.h"
#include "user/lib/cleanup.h"
#include "user/lib/clock.h"
#include "user/lib/proc.h"
#include "user/source/launch_private.h"

enum { BACK_NS = 500 * 1000 * 1000 };

/*
 * Did @tid stop only because it was asked to? Nobody has taken that stop by wait(2). A thread with a SIGSTOP of a probe
 * would stop for it in the call, where nobody handles that.
 */
static bool launch_call_is_free(pid_t tid)
{
	siginfo_t si = { .si_pid = 0 };

	return !waitid(P_PID, (id_t)tid, &si, WSTOPPED | WNOHANG | WNOWAIT | __WALL) && si.si_pid &&
	       si.si_status == (PTRACE_EVENT_STOP << 8 | SIGTRAP) && !stop_hides_signal(tid, SIGSTOP);
}

/* The stop must be one that launch_release() finds: not taken by wait(2). */
static int stop_again(pid_t tid)
{
	u64 end_ns = clock_now_ns() + BACK_NS;

	if (ptrace(PTRACE_INTERRUPT, tid, 0, 0) || ptrace(PTRACE_CONT, tid, 0, 0))
		return -ESRCH;
	while (!stop_is_there(tid))
		if (!clock_pause(LAUNCH_POLL_NS, end_ns))
			return -ETIME;
	return 0;
}

static int launch_call_by(pid_t tid, struct thread_request *r)
{
	struct thread_call call;
	taddr_t stack;
	int err = thread_call_find_stack(&stack, tid);

	if (!err)
		err = thread_call_begin_safe(&call, tid, &r->back, stack);
	if (err)
		return err;
	err = thread_call_do(&call, r);
	if (thread_call_end(&call) || stop_again(tid))
		err = -ESRCH;
	return err == -EBUSY ? -EAGAIN : err;
}

int launch_call(struct launch *l, pid_t pid, struct thread_request *r)
{
	const struct launched *p = launch_find(l, pid);
	auto_free pid_t *tids = NULL;
	int err = -EBUSY, last = -EBUSY;
	size_t nr = 0;

	if (!p || launch_is_left(p) || proc_threads(pid, &tids, &nr))
		return -ESRCH;
	for (size_t i = 0; i < nr && err == -EBUSY; i++) {
		if (!launch_call_is_free(tids[i]))
			continue;
		err = launch_call_by(tids[i], r);
		/* The stack of another thread may be long enough. */
		if (err == -ENOTSUP) {
			last = err;
			err = -EBUSY;
		}
	}
	return err == -EBUSY ? last : err;
}

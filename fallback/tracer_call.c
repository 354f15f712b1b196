/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lets a thread of a held process carry out a system call, for a snapshot of the process. */
#include <errno.h>
#include <signal.h>
#include <sys/ptrace.h>

#include "arch/thread_call.h"
#include "arch/stop.h"
#include "fallback/tracer_steps.h"
#include "user/lib/proc.h"

/*
 * Can @th make a call? Not where it waits for something, and not in the middle of a system call whose result the kernel
 * has not written yet: events such as a birth stop it there.
 */
static bool tracer_call_is_free(const struct tracer_thread *th)
{
	int code;

	if (th->role != ROLE_MEMBER || th->state != THREAD_STOPPED || th->sig || th->wait != WAIT_NONE ||
	    th->needs_step || th->is_watched)
		return false;
	code = stop_code(th->tid);
	return code == (SIGTRAP | PTRACE_EVENT_STOP << 8) || code == SI_KERNEL || code == TRAP_BRKPT;
}

/* The tracer's options are not changed here, so a filter would see the call, and may kill for it. */
static bool tracer_call_has_filter(pid_t pid)
{
	struct proc_status status;

	return proc_read_status(&status, pid) || status.seccomp;
}

static int tracer_call_by(const struct tracer_thread *th, struct thread_request *r)
{
	struct thread_call call;
	int err = tracer_call_has_filter(th->tid) ? -EPERM : thread_call_begin_held(&call, th->tid, r->insn);

	if (err)
		return err;
	err = thread_call_do(&call, r);
	if (thread_call_end(&call))
		err = -ESRCH;
	return err == -EBUSY ? -EAGAIN : err;
}

int tracer_call(struct tracer *t, pid_t pid, struct thread_request *r)
{
	struct tracer_process *p = tracer_find_process(t, pid);
	int err = -EBUSY;

	if (!p)
		return -ESRCH;
	for (struct tracer_thread *th = p->threads; th && p->nr_holds && err == -EBUSY; th = th->next)
		if (tracer_call_is_free(th))
			err = tracer_call_by(th, r);
	return err;
}

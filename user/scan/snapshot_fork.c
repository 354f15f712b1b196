/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copy a stopped process by a fork of its own. */
#include "user/scan/snapshot_fork.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "user/lib/cleanup.h"
#include "user/lib/clock.h"
#include "user/lib/log.h"
#include "user/lib/proc.h"
#include "user/scan/thread_call.h"

enum {
	/*
	 * The stack pointer of the copy. Should the copy ever run, because heaptap died before it could say that the
	 * copy dies too, then its first use of the stack is a fault. It has all signals blocked: the fault kills it.
	 */
	NO_STACK = 16,
	REAP_NS = 200000000, /* how long to wait for a thread that shall wait for the copy */
	POLL_NS = 50000,
};

/* If memory runs out, the kernel shall kill the copy and not the process. */
static void die_first(pid_t pid)
{
	auto_close int fd = -1;
	char path[40];

	snprintf(path, sizeof(path), "/proc/%d/oom_score_adj", (int)pid);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, "1000", 4) != 4)
		debug("scan: cannot let the copy die first: %s", strerror(errno));
}

static int fork_by(struct process_copy *c, struct thread_call *call)
{
	/* exit signal 0: the process hears nothing of the end of the copy. */
	const u64 args[INJECT_ARGS] = { CLONE_FILES | CLONE_FS, NO_STACK };
	s64 result = 0;
	pid_t child = 0;
	int err = thread_call_make(call, SYS_clone, args, &result, &child);
	int status;

	if (child && waitpid(child, &status, __WALL) == child && WIFSTOPPED(status) &&
	    ptrace(PTRACE_SETOPTIONS, child, 0, PTRACE_O_EXITKILL) == 0)
		c->pid = child;
	c->ns_pid = (pid_t)result;
	if (thread_call_end(call))
		err = -ESRCH;
	if (err)
		return err;
	if (c->pid) {
		die_first(c->pid);
		return 0;
	}
	return result < 0 ? (int)result : -ESRCH;
}

int process_copy_make(struct process_copy *c, const struct held_threads *held, const struct snapshot *s)
{
	auto_free struct thread_call *call = malloc(sizeof(*call));
	int err = call ? thread_call_find(&c->insn, s) : -ENOMEM;

	c->parent = held->pid;
	if (err)
		return err;
	err = -EBUSY;
	for (size_t i = 0; i < held->nr && err == -EBUSY; i++) {
		const struct held_thread *t = &held->threads[i];

		/* Others are in other kinds of stop, from which they must not run. */
		if (t->state != HELD_STOPPED || t->signal || t->in_group_stop)
			continue;
		outliving_begin(c->outliving);
		err = thread_call_begin(call, t->tid, c->insn);
		if (!err) {
			err = fork_by(c, call);
			err = err == -EBUSY ? -EAGAIN : err;
		}
		outliving_end(c->outliving);
	}
	return err;
}

/* Stop one thread of the process. False if that takes too long; then the thread is free again when the caller ends. */
static bool stop_one(pid_t tid)
{
	u64 end_ns = clock_now_ns() + REAP_NS;
	int status;

	if (ptrace(PTRACE_SEIZE, tid, 0, 0) || ptrace(PTRACE_INTERRUPT, tid, 0, 0))
		return false;
	do {
		pid_t pid = waitpid(tid, &status, __WALL | WNOHANG);

		if (pid == tid && WIFSTOPPED(status) && status >> 16 == PTRACE_EVENT_STOP &&
		    WSTOPSIG(status) == SIGTRAP)
			return true;
		if (pid == tid && WIFSTOPPED(status) && status >> 16 == PTRACE_EVENT_STOP) {
			ptrace(PTRACE_DETACH, tid, 0, 0); /* SIGSTOP has stopped it: leave it so */
			return false;
		}
		if (pid == tid && WIFSTOPPED(status))
			ptrace(PTRACE_CONT, tid, 0, status >> 16 ? 0 : (void *)(uintptr_t)WSTOPSIG(status));
		else if (pid)
			return false;
	} while (clock_pause(POLL_NS, end_ns));
	return false;
}

/* Let thread @tid wait for the copy, which is dead. */
static bool reap_by(const struct process_copy *c, struct thread_call *call, pid_t tid)
{
	const u64 args[INJECT_ARGS] = { (u64)c->ns_pid, 0, __WALL | WNOHANG, 0 };
	s64 result = 0;

	if (!stop_one(tid))
		return false;
	outliving_begin(c->outliving);
	if (!thread_call_begin(call, tid, c->insn)) {
		if (thread_call_make(call, SYS_wait4, args, &result, NULL))
			result = -ESRCH;
		if (thread_call_end(call))
			result = -ESRCH;
	}
	outliving_end(c->outliving);
	ptrace(PTRACE_DETACH, tid, 0, 0);
	return result == c->ns_pid;
}

static bool is_zombie(pid_t pid)
{
	struct proc_stat stat;

	return !proc_read_stat(&stat, pid) && stat.state == 'Z';
}

void process_copy_end(struct process_copy *c)
{
	auto_free struct thread_call *call = malloc(sizeof(*call));
	auto_free pid_t *tids = NULL;
	size_t nr = 0;

	if (!c->pid)
		return;
	kill(c->pid, SIGKILL);
	while (waitpid(c->pid, NULL, __WALL) < 0 && errno == EINTR)
		;
	if (call && is_zombie(c->pid) && !proc_threads(c->parent, &tids, &nr))
		for (size_t i = 0; i < nr && is_zombie(c->pid); i++)
			if (reap_by(c, call, tids[i]))
				break;
	if (is_zombie(c->pid))
		warn("scan: PID %d: its copy, PID %d, stays a zombie until the process ends", (int)c->parent,
		     (int)c->pid);
	c->pid = 0;
}

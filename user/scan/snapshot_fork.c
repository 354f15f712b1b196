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

#include "arch/stop.h"
#include "user/lib/cleanup.h"
#include "user/lib/clock.h"
#include "user/lib/helper_process.h"
#include "user/lib/log.h"
#include "user/lib/proc.h"
#include "user/scan/held_call.h"

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
static void snapshot_fork_die_first(pid_t pid)
{
	auto_close int fd = -1;
	char path[40];

	snprintf(path, sizeof(path), "/proc/%d/oom_score_adj", (int)pid);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, "1000", 4) != 4)
		debug("scan: cannot let the copy die first: %s", strerror(errno));
}

static int fork_by(struct held_caller *by, void *ctx)
{
	/* exit signal 0: the process hears nothing of the end of the copy. */
	struct thread_request r = { .number = SYS_clone, .args = { CLONE_FILES | CLONE_FS, NO_STACK } };
	struct process_copy *c = ctx;
	int err = held_make(by, &r);

	if (err)
		return err;
	c->pid = r.child;
	c->ns_pid = (pid_t)r.result;
	if (c->pid) {
		snapshot_fork_die_first(c->pid);
		return 0;
	}
	return r.result < 0 ? (int)r.result : -ESRCH;
}

int process_copy_make(struct process_copy *c, const struct stopped_threads *held, const struct snapshot *s)
{
	struct held_caller by = { .held = held, .holder = c->holder, .outliving = c->outliving };
	int err = thread_call_places(&by.places, s);

	c->parent = held->pid;
	c->places = by.places;
	return err ? err : held_call(&by, fork_by, c);
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

		if (pid && (pid != tid || !WIFSTOPPED(status)))
			return false;
		if (pid && stop_of(status) == STOP_ASKED)
			return true;
		if (pid && stop_of(status) == STOP_GROUP) {
			stop_end(tid, STOP_GROUP, PTRACE_DETACH, 0); /* SIGSTOP has stopped it: leave it so */
			return false;
		}
		if (pid)
			stop_end(tid, stop_of(status), PTRACE_CONT, stop_signal(status));
	} while (clock_pause(POLL_NS, end_ns));
	return false;
}

static struct thread_request wait_request(const struct process_copy *c)
{
	return (struct thread_request){ .insn = c->places.insn,
					.back = c->places.back,
					.number = SYS_wait4,
					.args = { (u64)c->ns_pid, 0, __WALL | WNOHANG, 0 } };
}

/* Let thread @tid wait for the copy, which is dead. */
static bool reap_by(const struct process_copy *c, struct thread_call *call, pid_t tid)
{
	struct thread_request r = wait_request(c);

	if (!stop_one(tid))
		return false;
	outliving_begin(c->outliving);
	if (!thread_call_begin(call, tid, c->places.insn, &c->places.back)) {
		if (thread_call_do(call, &r))
			r.result = -ESRCH;
		if (thread_call_end(call))
			r.result = -ESRCH;
	}
	outliving_end(c->outliving);
	stop_end(tid, STOP_ASKED, PTRACE_DETACH, 0);
	return r.result == c->ns_pid;
}

/* Let the holder do it. The tracer of the copy, which may be another process, sees its end first. */
static void reap_by_holder(const struct process_copy *c)
{
	const struct snapshot_holder *h = c->holder;
	u64 end_ns = clock_now_ns() + REAP_NS;
	int err = h->stop(h->ctx, REAP_NS), made;
	struct thread_request r;

	if (err && err != -EBUSY)
		return;
	do {
		r = wait_request(c);
		/* Nothing, where another process is its tracer. */
		waitpid(c->pid, NULL, __WALL | WNOHANG);
		made = h->call(h->ctx, &r);
	} while (!made && !r.result && clock_pause(POLL_NS, end_ns));
	if (!err)
		h->release(h->ctx);
}

static bool is_zombie(pid_t pid)
{
	struct proc_stat stat;

	return !proc_read_stat(&stat, pid) && stat.state == 'Z';
}

/* Let any thread of the process wait for the copy. */
static void snapshot_fork_reap(const struct process_copy *c)
{
	auto_free struct thread_call *call = malloc(sizeof(*call));
	auto_free pid_t *tids = NULL;
	size_t nr = 0;

	helper_process_wait(c->pid, NULL);
	if (!call || !is_zombie(c->pid) || proc_threads(c->parent, &tids, &nr))
		return;
	for (size_t i = 0; i < nr && is_zombie(c->pid); i++)
		if (reap_by(c, call, tids[i]))
			break;
}

void process_copy_end(struct process_copy *c)
{
	if (!c->pid)
		return;
	kill(c->pid, SIGKILL);
	if (c->holder)
		reap_by_holder(c);
	else
		snapshot_fork_reap(c);
	if (is_zombie(c->pid))
		warn("scan: PID %d: its copy, PID %d, stays a zombie until the process ends", (int)c->parent,
		     (int)c->pid);
	c->pid = 0;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Stops the threads of a target, and has one of them make system calls. */
#include "user/inject/threads.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fallback/stop.h"
#include "user/lib/array.h"
#include "user/lib/cleanup.h"
#include "user/lib/clock.h"
#include "user/lib/maps.h"
#include "user/lib/proc.h"
#include "user/lib/proc_memory.h"

enum { POLL_NS = 20 * 1000, MAX_CODE = 1 << 20, LEAVE_NS = 500 * 1000 * 1000 };

static bool is_dead(pid_t tid)
{
	struct proc_stat stat;

	return proc_read_stat(&stat, tid) || stat.state == 'Z' || stat.state == 'X';
}

static struct stopped_thread *find(const struct stopped *s, pid_t tid)
{
	for (size_t i = 0; i < s->nr; i++)
		if (s->threads[i].tid == tid)
			return &s->threads[i];
	return NULL;
}

/* Ask a thread that is new to us to stop. */
static int ask(struct stopped *s, pid_t tid)
{
	struct stopped_thread t = { .tid = tid };
	int err = array_reserve(s->threads, s->max, s->nr + 1);

	if (err)
		return err;
	if (s->is_traced)
		t.is_held = t.is_stopped = stop_is_there(tid);
	else if (ptrace(PTRACE_SEIZE, tid, 0, PTRACE_O_TRACESYSGOOD))
		return errno == ESRCH || is_dead(tid) ? 0 : -errno;
	if (!t.is_stopped)
		ptrace(PTRACE_INTERRUPT, tid, 0, 0);
	s->threads[s->nr++] = t;
	return 0;
}

/* Ask all threads that are there now. 1: some were new, 0, or -errno. */
static int ask_all(struct stopped *s)
{
	auto_free pid_t *tids = NULL;
	size_t nr = 0, before = s->nr;
	int err = proc_threads(s->pid, &tids, &nr);

	for (size_t i = 0; !err && i < nr; i++)
		if (!find(s, tids[i]) && !is_dead(tids[i]))
			err = ask(s, tids[i]);
	return err ? err : s->nr > before;
}

static void forget(struct stopped *s, struct stopped_thread *t)
{
	*t = s->threads[--s->nr];
}

/* Has @t stopped by now? Its stop is taken, or left to the one who traces it. */
static bool has_stopped(struct stopped *s, struct stopped_thread *t)
{
	int status;
	pid_t got;

	if (s->is_traced)
		return stop_is_there(t->tid);
	got = waitpid(t->tid, &status, __WALL | WNOHANG);
	if (!got)
		return false;
	if (got == t->tid && WIFSTOPPED(status))
		t->sig = stop_signal(status);
	return got == t->tid && WIFSTOPPED(status);
}

/* How many threads run still. */
static size_t count_running(struct stopped *s)
{
	size_t nr = 0;

	for (size_t i = 0; i < s->nr;) {
		struct stopped_thread *t = &s->threads[i];

		if (!t->is_stopped)
			t->is_stopped = has_stopped(s, t);
		if (!t->is_stopped && is_dead(t->tid)) {
			forget(s, t);
			continue;
		}
		nr += !t->is_stopped;
		i++;
	}
	return nr;
}

int threads_stop(struct stopped *s, pid_t pid, u64 end_ns)
{
	struct proc_status status;
	int err = proc_read_status(&status, pid);

	*s = (struct stopped){ .pid = pid };
	if (err)
		return err;
	s->is_traced = status.tracer_pid == getpid();
	if (status.tracer_pid && !s->is_traced)
		return -EPERM;
	do {
		err = ask_all(s);
		while (err >= 0 && count_running(s))
			if (!clock_pause(POLL_NS, end_ns))
				err = -ETIME;
	} while (err > 0);
	if (!err && !s->nr)
		err = -ESRCH;
	if (err)
		threads_resume(s);
	return err;
}

/* Run @t, which has made system calls, to a stop from which the kernel begins an interrupted system call again. */
static void run_to_stop(struct stopped_thread *t)
{
	u64 end_ns = clock_now_ns() + LEAVE_NS;
	int status;
	pid_t got;

	ptrace(PTRACE_INTERRUPT, t->tid, 0, 0);
	if (ptrace(PTRACE_CONT, t->tid, 0, 0))
		return;
	while (!(got = waitpid(t->tid, &status, __WALL | WNOHANG)) && clock_pause(POLL_NS, end_ns))
		;
	if (got == t->tid && WIFSTOPPED(status))
		t->sig = stop_signal(status);
}

/* Resume a thread that we trace anyway. Stops that we did not ask for are handled by whoever expects them. */
static void resume_traced(const struct stopped *s, struct stopped_thread *t)
{
	siginfo_t si = { .si_pid = 0 };
	int status;

	if (t->is_held)
		return;
	if (t == s->worker) {
		run_to_stop(t);
		ptrace(PTRACE_CONT, t->tid, 0, t->sig);
		return;
	}
	if (waitid(P_PID, (id_t)t->tid, &si, WSTOPPED | WNOHANG | WNOWAIT | __WALL) || !si.si_pid ||
	    si.si_status != (PTRACE_EVENT_STOP << 8 | SIGTRAP))
		return;
	if (waitpid(t->tid, &status, WNOHANG | __WALL) == t->tid)
		ptrace(PTRACE_CONT, t->tid, 0, 0);
}

static void resume(struct stopped *s, struct stopped_thread *t)
{
	int status;

	if (s->is_traced) {
		resume_traced(s, t);
		return;
	}
	if (t == s->worker)
		run_to_stop(t);
	/* A thread that did not stop in time cannot be detached before it has. The kernel detaches it when we end. */
	if (!t->is_stopped && waitpid(t->tid, &status, __WALL | WNOHANG) == t->tid && WIFSTOPPED(status))
		t->sig = stop_signal(status);
	ptrace(PTRACE_DETACH, t->tid, 0, t->sig);
}

void threads_resume(struct stopped *s)
{
	if (s->worker && remote_restore(s->worker->tid, &s->saved))
		s->worker = NULL;
	for (size_t i = 0; i < s->nr; i++)
		resume(s, &s->threads[i]);
	free(s->threads);
	*s = (struct stopped){ 0 };
}

/* Find the bytes of a system call in [@start, @end), which is code. */
static taddr_t search_code(const struct proc_memory *mem, taddr_t start, taddr_t end)
{
	size_t len = end - start > MAX_CODE ? MAX_CODE : end - start;
	auto_free u8 *code = malloc(len);
	const u8 *at;
	ssize_t got;

	if (!code)
		return 0;
	got = proc_memory_read(mem, start, code, len);
	at = got > 0 ? memmem(code, (size_t)got, remote_syscall_code, sizeof(remote_syscall_code)) : NULL;
	return at ? start + (taddr_t)(at - code) : 0;
}

static int find_syscall(struct stopped *s)
{
	struct maps_reader *maps;
	struct proc_memory mem;
	struct map_line line;
	int err = maps_open(&maps, s->pid);

	if (err)
		return err;
	err = proc_memory_open(&mem, s->pid);
	while (!err && !s->syscall && maps_next(maps, &line) == 1)
		if (line.is_executable && line.is_readable && strcmp(line.path, "[vsyscall]"))
			s->syscall = search_code(&mem, line.start, line.end);
	if (!err)
		proc_memory_close(&mem);
	maps_close(maps);
	return err ? err : s->syscall ? 0 : -EOPNOTSUPP;
}

/* One whose stop the kernel has no further business with. */
static struct stopped_thread *choose_worker(struct stopped *s)
{
	struct stopped_thread *found = NULL;

	for (size_t i = 0; i < s->nr; i++) {
		struct stopped_thread *t = &s->threads[i];
		siginfo_t si = { .si_pid = 0 };

		if (t->sig || !t->is_stopped)
			continue;
		if (t->is_held &&
		    (waitid(P_PID, (id_t)t->tid, &si, WSTOPPED | WNOHANG | WNOWAIT | __WALL) || si.si_pid))
			continue;
		if (!found || (t->is_held && !found->is_held))
			found = t;
	}
	return found;
}

static int prepare(struct stopped *s)
{
	struct stopped_thread *t = s->worker ? NULL : choose_worker(s);
	int status, err;

	if (s->worker)
		return 0;
	if (!t)
		return -EAGAIN;
	err = find_syscall(s);
	/* The stop that we have asked for is ours. */
	if (!err && s->is_traced && !t->is_held && waitpid(t->tid, &status, __WALL | WNOHANG) != t->tid)
		err = -EAGAIN;
	if (!err)
		err = remote_begin(&s->saved, t->tid);
	if (!err)
		s->worker = t;
	return err;
}

int threads_call(struct stopped *s, long nr, const u64 args[REMOTE_MAX_ARGS], s64 *result)
{
	int err = prepare(s);

	return err ? err
		   : remote_call(s->worker->tid, &s->saved, s->syscall, nr, args, result, &s->worker->sig);
}

int threads_scratch(struct stopped *s, taddr_t *sp)
{
	int err = prepare(s);

	*sp = err ? 0 : s->saved.sp;
	return err;
}

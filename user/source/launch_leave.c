/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The end of tracing a program that heaptap started, while it runs on: at the end of heaptap, or for another tracer. */
#include <errno.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "arch/stop.h"
#include "user/lib/cleanup.h"
#include "user/lib/clock.h"
#include "user/lib/log.h"
#include "user/lib/proc.h"
#include "user/source/launch_private.h"
#include "user/source/launch_threads.h"

/* The signal that thread @tid stopped for and that it is to get. */
static int signal_to_pass(const struct launch *l, struct launched *p, pid_t tid, int status)
{
	int sig = stop_signal(status);

	return launch_reached_entry(l, p, tid, sig) || launch_mends_copy(l, p, tid, sig) ||
			       launch_is_from_probe(tid, sig)
		       ? 0
		       : sig;
}

/* Thread @tid is in @stop. Detach from it, and deliver @sig to it. */
static void launch_leave_detach(struct launched *p, pid_t tid, enum stop stop, int sig)
{
	if (p->program.state == PROGRAM_STARTING && tid == p->pid)
		places_clean(&p->places, &p->places.memory);
	ptrace(PTRACE_SETOPTIONS, tid, 0, 0);
	stop_end(tid, stop, PTRACE_DETACH, sig);
}

static bool launch_leave_is_birth(int status)
{
	return stop_of(status) == STOP_CHILD || stop_of(status) == STOP_VFORK;
}

/* Wait for a stop of @tid. The end of the program itself is noted: no other wait(2) would tell it. */
static bool await_stop(struct launch *l, pid_t tid, int *status)
{
	*status = -1; /* neither an exit nor a death by a signal */
	if (launch_threads_await(tid, LAUNCH_LEAVE_NS, status))
		return true;
	if (tid == l->pid && (WIFEXITED(*status) || WIFSIGNALED(*status)))
		launch_handle_status(l, tid, *status);
	return false;
}

/* Detach from thread @tid of @p. */
static void leave_thread(struct launch *l, struct launched *p, pid_t tid)
{
	int status = 0, sig, later = 0;

	ptrace(PTRACE_INTERRUPT, tid, 0, 0);
	if (!await_stop(l, tid, &status))
		return;
	if (launch_leave_is_birth(status))
		launch_note_birth(l, tid);
	sig = signal_to_pass(l, p, tid, status);
	/* Without us the signal of a probe would stop the thread for ever, that of our breakpoint would kill it. */
	if (stop_hides_signal(tid, SIGSTOP) || stop_hides_signal(tid, SIGTRAP)) {
		if (ptrace(PTRACE_CONT, tid, 0, 0) || !await_stop(l, tid, &status))
			return;
		later = signal_to_pass(l, p, tid, status);
	}
	launch_leave_detach(p, tid, stop_of(status), later ? later : sig);
}

/* Detach from the threads of @p but @stopped, which wait(2) has reported as stopped (0 = none), and then from that. */
static void leave_process(struct launch *l, struct launched *p, pid_t stopped)
{
	auto_free pid_t *tids = NULL;
	size_t nr = 0;

	if (proc_threads(p->pid, &tids, &nr))
		return;
	for (size_t i = 0; i < nr; i++)
		if (tids[i] != stopped)
			leave_thread(l, p, tids[i]);
	if (stopped)
		launch_leave_detach(p, stopped, STOP_SIGNAL, 0);
	program_set_state(&p->program, p->pid, PROGRAM_LEFT);
}

void launch_leave_process(struct launch *l, struct launched *p)
{
	leave_process(l, p, 0);
}

bool launch_leave(struct launch *l)
{
	if (l->tracer || l->has_ended)
		return false;
	launch_attend_later(l);
	if (!launch_is_left(l->processes[0]))
		leave_process(l, l->processes[0], 0);
	return true;
}

/* Children that were made last may not have stopped when the program ended. Only this detaches from them. */
static void await_births(struct launch *l)
{
	u64 end_ns = clock_now_ns() + LAUNCH_LEAVE_NS;
	int status;
	pid_t tid;

	while (l->nr_unborn > 0 && clock_now_ns() < end_ns) {
		tid = waitpid(-1, &status, __WALL | WNOHANG);
		if (tid > 0)
			launch_handle_status(l, tid, status);
		else if ((tid < 0 && errno == ECHILD) || !clock_pause(LAUNCH_POLL_NS, end_ns))
			break;
	}
	l->nr_unborn = 0;
}

void launch_leave_children(struct launch *l)
{
	launch_attend_later(l);
	await_births(l);
	for (size_t i = launch_first_child(l); i < l->nr; i++)
		if (!launch_is_left(l->processes[i]))
			leave_process(l, l->processes[i], 0);
	while (l->nr > launch_first_child(l))
		launch_forget_last(l);
}

/* Nothing of @p is reported from now on. Its thread @stopped is in a stop that wait(2) has reported; 0 = none is. */
static void leave_for(struct launch *l, struct launched *p, pid_t stopped, enum thread_stop_why why)
{
	debug("run: PID %d: detached, because another process is to trace it", p->pid);
	launch_await_stops(p, STOP_BY_TRACER);
	l->hooks.leaving(l->hooks.ctx, p->pid, why);
	leave_process(l, p, stopped);
}

/* The process of @tid, which another one wants to trace, if we trace it. */
static struct launched *find_wanted(const struct launch *l, pid_t tid)
{
	struct proc_status status;
	struct launched *p = proc_read_status(&status, tid) ? NULL : launch_find(l, status.tgid);

	return p && !launch_is_left(p) ? p : NULL;
}

void launch_stopped_for(struct launch *l, struct launched *p, pid_t tid, const struct thread_stop *why)
{
	struct launched *wanted;

	if (why->why == THREAD_STOP_UNTRACED || why->request == THREAD_STOP_TRACEME) {
		leave_for(l, p, tid, why->why);
		return;
	}
	wanted = find_wanted(l, why->pid);
	if (wanted && wanted != p)
		leave_for(l, wanted, 0, why->why);
	launch_resume(p, tid, STOP_SIGNAL, 0);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What happens to traced threads, one event after the other. */
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "fallback/tracer_steps.h"

/* Each with what it obliges us to. Whoever stands is let go on by tracer_resume(), now or later. */
enum stop {
	STOP_GONE,	 /* the thread has ended: forget it, and with the last one the process */
	STOP_SIGNAL,	 /* a signal on its way: deliver it */
	STOP_TRAP,	 /* SIGTRAP: one of our places? Do what it is for; else deliver it */
	STOP_GROUP,	 /* SIGSTOP and its like have stopped the process: it stays so, until SIGCONT */
	STOP_ASKED,	 /* we asked for it, it is new, or SIGCONT has come */
	STOP_CHILD,	 /* it has made a thread or process: that is traced, too */
	STOP_VFORK_DONE, /* its child no longer uses its memory: it runs again */
	STOP_EXEC,	 /* another program, no thread but the first: nothing of the old one is left */
	STOP_EXIT,	 /* it will end: the last moment of its memory, if it is the last thread */
	STOP_SYSCALL,	 /* in a program that starts: it may have mapped code */
	NR_STOPS
};

static enum stop stop_of(int status)
{
	int event = status >> 16, sig = WSTOPSIG(status);

	if (!WIFSTOPPED(status))
		return STOP_GONE;
	switch (event) {
	case PTRACE_EVENT_STOP:
		return sig == SIGSTOP || sig == SIGTSTP || sig == SIGTTIN || sig == SIGTTOU ? STOP_GROUP
											    : STOP_ASKED;
	case PTRACE_EVENT_FORK:
	case PTRACE_EVENT_VFORK:
	case PTRACE_EVENT_CLONE:
		return STOP_CHILD;
	case PTRACE_EVENT_VFORK_DONE:
		return STOP_VFORK_DONE;
	case PTRACE_EVENT_EXEC:
		return STOP_EXEC;
	case PTRACE_EVENT_EXIT:
		return STOP_EXIT;
	default:
		if (sig == (SIGTRAP | 0x80))
			return STOP_SYSCALL;
		return sig == SIGTRAP ? STOP_TRAP : STOP_SIGNAL;
	}
}

static void at_gone(struct tracer *t, struct thread *th, int status)
{
	struct traced *p = th->process;
	pid_t pid = p->pid;
	/* The first thread's end is told when no other one is left. */
	bool is_end = th->tid == pid || (p->nr_threads == 1 && !th->is_copy);

	tracer_send_end(t, th);
	tracer_drop_thread(t, th);
	if (is_end && p->is_child)
		tracer_tell_end(t, p, status);
	if (!p->nr_threads) {
		tracer_clean_orphans(t, p);
		tracer_drop_process(t, p);
	}
	if (is_end && t->host.ended)
		t->host.ended(t->host.ctx, pid, status);
}

static void at_signal(struct tracer *t, struct thread *th, int status)
{
	th->sig = WSTOPSIG(status);
	tracer_resume(t, th);
}

static void at_trap(struct tracer *t, struct thread *th, int status)
{
	struct traced *p = th->process;

	if (!tracer_at_place(t, th))
		th->sig = WSTOPSIG(status);
	if (th->needs_step && !p->nr_holds)
		tracer_step(t, p);
	else
		tracer_resume(t, th);
}

static void at_group(struct tracer *t, struct thread *th, int status)
{
	(void)status;
	th->owed = OWED_LISTEN;
	tracer_resume(t, th);
}

static void at_asked(struct tracer *t, struct thread *th, int status)
{
	(void)status;
	if (th->is_leaving)
		tracer_let_copy_go(t, th);
	else
		tracer_resume(t, th);
}

static void at_child(struct tracer *t, struct thread *th, int status)
{
	unsigned long tid = 0;
	int event = status >> 16;

	th->is_vforking = event == PTRACE_EVENT_VFORK;
	if (!ptrace(PTRACE_GETEVENTMSG, th->tid, 0, &tid) && tid)
		tracer_adopt(t, th->process, (pid_t)tid, event);
	tracer_resume(t, th);
}

static void at_vfork_done(struct tracer *t, struct thread *th, int status)
{
	(void)status;
	th->is_vforking = false;
	tracer_resume(t, th);
}

static void at_exec(struct tracer *t, struct thread *th, int status)
{
	struct traced *p = th->process, *left;
	unsigned long former = 0;

	(void)status;
	if (th->is_copy) {
		tracer_copy_executes(t, th);
		return;
	}
	left = tracer_part(t, p);
	ptrace(PTRACE_GETEVENTMSG, th->tid, 0, &former);
	for (struct thread *other = p->threads, *next; other; other = next) {
		next = other->next;
		if (other == th || other->is_copy)
			continue;
		if (other->tid != (pid_t)former)
			tracer_send_end(t, other);
		tracer_drop_thread(t, other);
	}
	if (th->tid != (pid_t)former)
		tracer_send_end(t, th);
	th->inflight.nr = 0;
	tracer_new_image(t, p, th);
	tracer_resume(t, th);
	/* Other events are handled meanwhile: last. */
	if (left)
		tracer_let_go(t, left);
}

static void at_exit(struct tracer *t, struct thread *th, int status)
{
	(void)status;
	tracer_thread_exits(t, th);
}

static void at_syscall(struct tracer *t, struct thread *th, int status)
{
	(void)status;
	if (th->process->is_starting)
		tracer_at_syscall(t, th);
	tracer_resume(t, th);
}

static void (*const handlers[NR_STOPS])(struct tracer *t, struct thread *th, int status) = {
	[STOP_GONE] = at_gone,	     [STOP_SIGNAL] = at_signal,
	[STOP_TRAP] = at_trap,	     [STOP_GROUP] = at_group,
	[STOP_ASKED] = at_asked,     [STOP_CHILD] = at_child,
	[STOP_EXEC] = at_exec,	     [STOP_EXIT] = at_exit,
	[STOP_SYSCALL] = at_syscall, [STOP_VFORK_DONE] = at_vfork_done,
};

void tracer_dispatch(struct tracer *t, pid_t tid, int status)
{
	struct thread *th = tracer_thread(t, tid);

	if (!th) {
		if (WIFSTOPPED(status))
			tracer_at_unknown(t, tid);
		return;
	}
	th->stands = WIFSTOPPED(status);
	th->owed = OWED_CONT;
	th->sig = 0;
	handlers[stop_of(status)](t, th, status);
}

bool tracer_pump(struct tracer *t)
{
	int status;
	pid_t tid = waitpid(-1, &status, __WALL | WNOHANG);

	if (tid <= 0)
		return false;
	tracer_dispatch(t, tid, status);
	return true;
}

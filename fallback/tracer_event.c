/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Handles the events of traced threads, one after the other. */
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "arch/tracee.h"
#include "arch/stop.h"
#include "fallback/tracer_steps.h"

static void at_gone(struct tracer *t, struct tracer_thread *th, int status)
{
	struct tracer_process *p = th->process;
	pid_t pid = p->pid;
	/* The kernel reports the end of the first thread after those of all others. */
	bool is_end = th->tid == pid || (p->nr_threads == 1 && th->role == ROLE_MEMBER);

	tracer_send_end(t, th);
	tracer_drop_thread(t, th);
	if (is_end && p->is_child) {
		tracer_report_end(t, p, status);
		p->is_child = false;
		t->nr_followed--;
	}
	if (!p->nr_threads) {
		tracer_clean_orphans(t, p);
		tracer_drop_process(t, p);
	}
	if (is_end && t->host.ended)
		t->host.ended(t->host.ctx, pid, status);
}

static void at_signal(struct tracer *t, struct tracer_thread *th, int status)
{
	th->sig = WSTOPSIG(status);
	tracer_resume(t, th);
}

static void at_trap(struct tracer *t, struct tracer_thread *th, int status)
{
	struct tracer_process *p = th->process;

	if (!tracer_at_place(t, th) && !tracer_at_copy(t, th) &&
	    (IS_AGENT || !p->ignores_trap || stop_code(th->tid) > 0))
		th->sig = WSTOPSIG(status);
	if (th->needs_step && !p->nr_holds)
		tracer_step(t, p);
	else
		tracer_resume(t, th);
}

/* The state says all: a group stop (resumed by PTRACE_LISTEN), or the end of a vfork(). */
static void at_state(struct tracer *t, struct tracer_thread *th, int status)
{
	(void)status;
	tracer_resume(t, th);
}

static void at_asked(struct tracer *t, struct tracer_thread *th, int status)
{
	(void)status;
	if (th->role == ROLE_COPY) {
		tracer_detach_copy(t, th);
		return;
	}
	if (!IS_AGENT)
		tracer_look_for_twin(t, th);
	tracer_resume(t, th);
}

static void at_child(struct tracer *t, struct tracer_thread *th, int status)
{
	unsigned long tid = 0;
	int event = status >> 16;

	if (!ptrace(PTRACE_GETEVENTMSG, th->tid, 0, &tid) && tid) {
		tracer_untie_child(t, th->tid, (pid_t)tid);
		if (!IS_AGENT)
			t->maker = th->tid;
		tracer_adopt(t, th->process, (pid_t)tid, event);
		if (!IS_AGENT)
			t->maker = 0;
	}
	tracer_resume(t, th);
}

static void at_exec(struct tracer *t, struct tracer_thread *th, int status)
{
	struct tracer_process *p = th->process, *left;
	unsigned long former = 0;

	(void)status;
	if (th->role != ROLE_MEMBER) {
		tracer_copy_executes(t, th);
		return;
	}
	left = tracer_part(t, p);
	ptrace(PTRACE_GETEVENTMSG, th->tid, 0, &former);
	tracer_untie_exec(t, (pid_t)former, th->tid);
	for (struct tracer_thread *other = p->threads, *next; other; other = next) {
		next = other->next;
		if (other == th || other->role != ROLE_MEMBER)
			continue;
		if (other->tid != (pid_t)former)
			tracer_send_end(t, other);
		tracer_drop_thread(t, other);
	}
	if (th->tid != (pid_t)former)
		tracer_send_end(t, th);
	th->inflight.nr = 0;
	th->wait = WAIT_NONE;
	th->needs_step = th->is_watched = false;
	if (!IS_AGENT)
		tracer_trap_begin(th);
	tracer_new_image(t, p, th);
	tracer_resume(t, th);
	/* Comes last, because other events are handled meanwhile. */
	if (left)
		tracer_detach_process(t, left);
}

static void at_exit(struct tracer *t, struct tracer_thread *th, int status)
{
	(void)status;
	tracer_thread_exits(t, th);
}

static void at_syscall(struct tracer *t, struct tracer_thread *th, int status)
{
	(void)status;
	if (th->is_watched && tracee_call(th->tid) == TRACEE_CALL_OBSERVED) {
		tracer_leave(t, th->process);
		return;
	}
	if (th->process->program.state == PROGRAM_STARTING)
		tracer_at_syscall(t, th);
	tracer_resume(t, th);
}

/* The state that a thread is in at a stop, and what is done. */
static const struct {
	enum tracer_thread_state state;
	void (*handle)(struct tracer *t, struct tracer_thread *th, int status);
} stops[NR_STOPS] = {
	[STOP_GONE] = { THREAD_EXITING, at_gone },	 [STOP_SIGNAL] = { THREAD_STOPPED, at_signal },
	[STOP_TRAP] = { THREAD_STOPPED, at_trap },	 [STOP_GROUP] = { THREAD_GROUP_STOPPED, at_state },
	[STOP_ASKED] = { THREAD_STOPPED, at_asked },	 [STOP_CHILD] = { THREAD_STOPPED, at_child },
	[STOP_VFORK] = { THREAD_AT_VFORK, at_child },	 [STOP_VFORK_DONE] = { THREAD_STOPPED, at_state },
	[STOP_EXEC] = { THREAD_STOPPED, at_exec },	 [STOP_EXIT] = { THREAD_AT_EXIT, at_exit },
	[STOP_SYSCALL] = { THREAD_STOPPED, at_syscall },
};

void tracer_dispatch(struct tracer *t, pid_t tid, int status)
{
	struct tracer_thread *th = tracer_find_thread(t, tid);
	enum stop stop = stop_of(status);

	if (!th) {
		if (WIFSTOPPED(status))
			tracer_at_unknown(t, tid);
		return;
	}
	if (stop != STOP_GONE)
		tracer_set_thread_state(th, stops[stop].state);
	th->stop = stop;
	th->sig = 0;
	stops[stop].handle(t, th, status);
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

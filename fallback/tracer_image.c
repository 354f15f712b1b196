/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A traced program from its exec to its end. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arch/tracee.h"
#include "fallback/code_memory.h"
#include "fallback/tracer_steps.h"
#include "user/lib/clock.h"
#include "user/lib/log.h"
#include "user/lib/proc.h"

int tracer_open_image(struct tracer_process *p)
{
	bool is_32bit = false;
	struct proc_stat stat;
	char path[32];
	int err;

	places_fini(&p->places);
	if (!IS_AGENT)
		sampled_fini(&p->sampled);
	if (p->mem_fd >= 0)
		close(p->mem_fd);
	snprintf(path, sizeof(path), "/proc/%d/mem", proc_reader(p->pid));
	p->mem_fd = open(path, O_RDWR | O_CLOEXEC);
	if (p->mem_fd < 0)
		return errno == ENOENT ? -ESRCH : errno == EACCES ? -EPERM : -errno;
	err = proc_is_32bit(&is_32bit, p->pid);
	if (err && err != -ENOEXEC)
		return err == -EACCES ? -EPERM : err;
	p->cpu = cpu_native(is_32bit ? 4 : 8);
	if (!p->cpu)
		return -ENOTSUP;
	p->start_sp = proc_read_stat(&stat, p->pid) ? 0 : stat.start_sp;
	places_init(&p->places, p->cpu, code_by_file(p->mem_fd));
	p->nr_maps = 0;
	return 0;
}

void tracer_enter_image(struct tracer_process *p)
{
	program_set_state(&p->program, p->pid, PROGRAM_RUNNING);
	if (tracer_open_image(p)) {
		/* The calls of this process can no longer be seen. */
		p->losses->other++;
		p->cpu = NULL;
	} else if (program_find_entry(&p->program, p->pid, p->cpu->word_size == 4) &&
		   program_follow_start(&p->program, &p->places, p->pid)) {
		debug("ptrace: PID %d: the start is not followed", p->pid);
	}
}

void tracer_new_image(struct tracer *t, struct tracer_process *p, struct tracer_thread *th)
{
	bool was_waiting = p->program.state == PROGRAM_WAITING;

	tracer_enter_image(p);
	if (!was_waiting) {
		tracer_report(t, th, EVENT_EXEC);
		return;
	}
	th->wait = WAIT_START;
	if (t->host.launched)
		t->host.launched(t->host.ctx, p->pid);
}

/* All libraries that the program was linked to are mapped. */
void tracer_at_start(struct tracer *t, struct tracer_thread *th)
{
	struct tracer_process *p = th->process;

	places_remove(&p->places, places_address(&p->places, p->program.entry), PLACE_START, 0);
	program_set_state(&p->program, p->pid, PROGRAM_RUNNING);
	tracer_report(t, th, EVENT_MAPS);
}

/* Report new code before any of it can run. */
void tracer_at_syscall(struct tracer *t, struct tracer_thread *th)
{
	struct tracer_process *p = th->process;

	if (tracee_has_loaded(th->tid, &p->program.has_new_code))
		tracer_report(t, th, EVENT_MAPS);
}

static size_t count_alive(const struct tracer_process *p)
{
	size_t nr = 0;

	for (const struct tracer_thread *th = p->threads; th; th = th->next)
		nr += th->role == ROLE_MEMBER && th->state != THREAD_AT_EXIT && th->state != THREAD_EXITING;
	return nr;
}

/* The process ends: wait until all threads have stopped at their ends, and report it. The threads stay stopped. */
static void report_exit(struct tracer *t, struct tracer_process *p, int status)
{
	pid_t pid = p->pid;

	program_set_state(&p->program, p->pid, PROGRAM_AT_END);
	for (struct tracer_thread *th = p->threads; th; th = th->next)
		if (th->wait == WAIT_KILLER)
			th->wait = WAIT_NONE;
	if (tracer_stop_all(t, p, PROGRAM_EXIT_HOLD_NS) == -ESRCH)
		return;
	/* Another thread was faster, and has executed a program: the process lives. */
	if (p->program.state != PROGRAM_AT_END) {
		tracer_unhold(t, p);
		return;
	}
	p->nr_holds--;
	if (!t->host.exiting || !t->host.exiting(t->host.ctx, pid, status)) {
		tracer_let_end(t, pid);
	} else if (!IS_AGENT && !p->is_launched) {
		/* The process is not ours to keep, should heaptap be stopped. */
		p->end_wait_ns = clock_now_ns() + PROGRAM_EXIT_HOLD_NS;
		tracer_arm(t);
	}
}

void tracer_leave(struct tracer *t, struct tracer_process *p)
{
	p->is_leaving = true;
	if (p->is_launched && program_is_alive(&p->program)) {
		report_exit(t, p, TRACER_LEAVES);
		return;
	}
	/* Calls of @p are not seen any more. */
	p->losses->other++;
	tracer_detach_process(t, p);
}

void tracer_thread_exits(struct tracer *t, struct tracer_thread *th)
{
	struct tracer_process *p = th->process;
	enum program_exit kind;
	int status;

	/* The process may have dropped pages of its code (MADV_DONTNEED), and the breakpoints with them. */
	if (th->role == ROLE_MEMBER && (!count_alive(p) || tracee_call(th->tid) == TRACEE_CALL_EXITS_ALL))
		tracer_check(t, p->pid);
	if (th->role != ROLE_MEMBER || !(p->is_launched || (!IS_AGENT && t->options.holds_ends)) ||
	    !program_is_alive(&p->program) || program_exit_status(th->tid, &status)) {
		tracer_resume(t, th);
		return;
	}
	kind = program_exit_kind(&p->program, th->tid, status, !count_alive(p));
	if (kind == PROGRAM_EXIT_ALL) {
		report_exit(t, p, status);
		return;
	}
	if (kind == PROGRAM_EXIT_KILLED) {
		th->wait = WAIT_KILLER;
		th->wait_end_ns = clock_now_ns() + PROGRAM_KILLER_NS;
		tracer_arm(t);
	}
	tracer_resume(t, th);
}

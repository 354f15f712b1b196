/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Events of a program that heaptap starts, while a verdict is found: only those that need no hook are handled. */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arch/stop.h"
#include "user/lib/array.h"
#include "user/lib/cleanup.h"
#include "user/lib/proc.h"
#include "user/lib/same_memory.h"
#include "user/source/launch_private.h"
#include "user/source/launch_threads.h"

/* Does only the thread end, and not its process? */
static bool ends_alone(const struct launched *p, pid_t tid)
{
	int status;

	return p && program_is_alive(&p->program) && launch_threads_have(p->pid, tid) &&
	       !program_exit_status(tid, &status) &&
	       program_exit_kind(&p->program, tid, status, launch_threads_count(p->pid) <= 1) ==
		       PROGRAM_EXIT_THREAD;
}

/* A first stop before that of the parent's report, or after it; @p is its process, NULL = not known yet. */
static bool launch_attend_is_birth(const struct launched *p, pid_t tid)
{
	struct proc_status status;

	if (p)
		return p->is_newborn;
	return !proc_read_status(&status, tid) && status.tgid == tid && same_memory(status.ppid, tid) <= 0;
}

static const struct launched *launch_attend_find_process(const struct launch *l, pid_t tid)
{
	struct proc_status status;

	return proc_read_status(&status, tid) ? NULL : launch_find(l, status.tgid);
}

/* Is the stop of @tid one that launch_handle_status() handles without a hook? */
static bool needs_no_hook(const struct launch *l, pid_t tid, int status)
{
	/* Threads of children are left for later, but for their births and the like. */
	const struct launched *p =
		launch_has_program(l) ? launch_find(l, tid) : launch_attend_find_process(l, tid);
	enum stop stop = stop_of(status);

	if (stop == STOP_ASKED && l->hooks.born && launch_attend_is_birth(p, tid))
		return false;
	p = p ? p : launch_program(l);
	if (!p)
		return false;
	switch (stop) {
	case STOP_SIGNAL:
		return p->program.state == PROGRAM_RUNNING && !launch_is_from_probe(tid, stop_signal(status));
	case STOP_TRAP:
		return p->program.state == PROGRAM_RUNNING && stop_code(tid) <= 0;
	case STOP_EXIT:
		return ends_alone(p, tid);
	case STOP_GROUP:
	case STOP_ASKED:
	case STOP_CHILD:
	case STOP_VFORK:
	case STOP_VFORK_DONE:
		return p->program.state != PROGRAM_STARTING;
	default:
		return false;
	}
}

void launch_attend(struct launch *l)
{
	pid_t tid;
	int status;

	if (l->tracer || (launch_has_program(l) && launch_is_left(l->processes[0])))
		return;
	/* Room first: an event that was taken cannot be given back. */
	while (!array_reserve(l->later, l->max_later, l->nr_later + 1) &&
	       (tid = waitpid(-1, &status, __WALL | WNOHANG)) > 0) {
		if (WIFSTOPPED(status) && needs_no_hook(l, tid, status))
			launch_handle_status(l, tid, status);
		else
			l->later[l->nr_later++] = (struct launch_event){ tid, status };
	}
}

void launch_attend_later(struct launch *l)
{
	auto_free struct launch_event *events = take_ptr(l->later);
	size_t nr = l->nr_later;

	l->nr_later = l->max_later = 0;
	for (size_t i = 0; i < nr; i++)
		launch_handle_status(l, events[i].tid, events[i].status);
}

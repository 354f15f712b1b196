/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Running processes join a launch: heaptap becomes the ptracer of all of their threads. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <unistd.h>

#include "user/lib/cleanup.h"
#include "user/lib/log.h"
#include "user/lib/proc.h"
#include "user/source/launch_private.h"

enum { JOIN_NS = 1000 * 1000 * 1000 };

int launch_new_joined(struct launch **out, const struct launch_hooks *hooks)
{
	struct launch *l = calloc(1, sizeof(*l));

	if (!l)
		return -ENOMEM;
	*l = (struct launch){
		.hooks = *hooks, .max_children = UINT32_MAX, .go = { -1, -1 }, .report = { -1, -1 }
	};
	*out = l;
	return 0;
}

/* 1: thread @tid is traced from now on, 0: it was before, or ends. -errno: it cannot be. */
static int launch_join_seize(const struct launch *l, pid_t pid, pid_t tid)
{
	int err;

	if (!ptrace(PTRACE_SEIZE, tid, 0, launch_ptrace_options(l)))
		return 1;
	err = -errno;
	return err == -ESRCH || proc_is_our_tracee(tid) || proc_thread_has_ended(pid, tid) ? 0 : err;
}

/* Threads that threads of @pid make are traced from the beginning once their makers are. */
static int launch_join_seize_all(const struct launch *l, pid_t pid)
{
	int nr_new;

	do {
		auto_free pid_t *tids = NULL;
		size_t nr = 0;
		int err = proc_threads(pid, &tids, &nr);

		nr_new = 0;
		for (size_t i = 0; i < nr && err >= 0; i++) {
			err = launch_join_seize(l, pid, tids[i]);
			nr_new += err;
		}
		if (err < 0)
			return err;
	} while (nr_new);
	return 0;
}

/* Is a thread of @pid traced by us? */
static bool launch_join_has_tracee(pid_t pid)
{
	auto_free pid_t *tids = NULL;
	size_t nr = 0;
	bool is_any = false;

	for (size_t i = proc_threads(pid, &tids, &nr) ? nr : 0; i < nr && !is_any; i++)
		is_any = proc_is_our_tracee(tids[i]);
	return is_any;
}

/* Processes are in no order, but for the program. */
static void launch_join_forget(struct launch *l, struct launched *p)
{
	for (size_t i = 0; i < l->nr; i++)
		if (l->processes[i] == p) {
			l->processes[i] = l->processes[l->nr - 1];
			l->processes[l->nr - 1] = p;
			launch_forget_last(l);
		}
}

int launch_part(struct launch *l, pid_t pid)
{
	struct launched *p = launch_find(l, pid);
	int err;

	if (!p || p == launch_program(l))
		return 0;
	launch_attend_later(l);
	p = launch_find(l, pid);
	if (!p)
		return 0;
	launch_leave_process(l, p);
	launch_join_forget(l, p);
	if (!launch_join_has_tracee(pid))
		return 0;
	err = launch_join(l, pid);
	if (!err)
		launch_release(l, pid);
	return err == -ENOMEM ? err : -EAGAIN;
}

int launch_join(struct launch *l, pid_t pid)
{
	struct launched *p;
	int err = launch_add(l, pid, &p);

	if (err)
		return err;
	err = launch_join_seize_all(l, pid);
	if (!err && !proc_is_our_tracee(pid))
		err = -ESRCH;
	if (err) {
		launch_leave_process(l, p);
		launch_forget_last(l);
		return err;
	}
	/* A call that makes a child, and had begun before, is over when its thread stops. */
	if (launch_stop(p, JOIN_NS) || stop_all_running(&p->held))
		debug("attach: PID %d: not all threads have stopped", pid);
	return 0;
}

void launch_await_end(struct launch **l, const struct launch_hooks *hooks, pid_t pid)
{
	if ((!*l && launch_new_joined(l, hooks)) || launch_watches(*l, pid))
		return;
	if (launch_join(*l, pid)) {
		debug("PID %d: ends before it can be stopped", (int)pid);
		return;
	}
	launch_release(*l, pid);
	launch_poll(*l);
}

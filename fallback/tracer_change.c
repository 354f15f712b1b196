/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lets another one change a traced process, whose threads only the tracer can stop. */
#include "fallback/tracer_change.h"

#include <errno.h>

#include "arch/inject.h"
#include "fallback/tracer_steps.h"
#include "user/lib/clock.h"

/* At the end of heaptap, whom nobody asks any more. */
#define LEAVE_NS (3ULL * 1000 * 1000 * 1000)
#define STOP_NS	 (500ULL * 1000 * 1000)
#define PAUSE_NS (10ULL * 1000 * 1000)

/* A thread that SIGSTOP has stopped could not be asked to stop once more without its going on afterwards. */
static bool is_listening(const struct tracer_process *p)
{
	for (const struct tracer_thread *th = p->threads; th; th = th->next)
		if (th->state == THREAD_LISTENING || th->state == THREAD_GROUP_STOPPED)
			return true;
	return false;
}

int tracer_change(struct tracer *t, pid_t pid, int fd)
{
	const struct tracer_process *p = tracer_find_process(t, pid);
	const struct tracer_changer *c = t->options.changer;

	if (!p || !c)
		return -ESRCH;
	if (!p->nr_holds || is_listening(p))
		return -EBUSY;
	return c->change(c->ctx, pid, fd);
}

/* Let its threads go on for a moment. */
static bool tracer_change_go_on(struct tracer *t, u64 end_ns)
{
	u64 now = clock_now_ns(), until = now + PAUSE_NS;

	while (clock_now_ns() < until)
		if (!tracer_pump(t))
			clock_pause(PAUSE_NS / 10, until);
	return now < end_ns;
}

static int tracer_change_leave(struct tracer *t, pid_t pid)
{
	const struct tracer_changer *c = t->options.changer;
	const struct tracer_process *p = tracer_find_process(t, pid);
	bool was_held = p && p->hold_end_ns;
	int err = was_held ? 0 : tracer_hold(t, pid, STOP_NS);

	if (err)
		return err;
	p = tracer_find_process(t, pid);
	err = is_listening(p) ? -EBUSY : c->leave(c->ctx, pid);
	if (!was_held)
		tracer_release(t, pid);
	return err;
}

/* The least PID above @pid; 0 = there is none. While one process is held, others may end. */
static pid_t pid_after(const struct tracer *t, pid_t pid)
{
	pid_t least = 0;

	for (const struct tracer_process *p = t->processes; p; p = p->next)
		if (p->pid > pid && (!least || p->pid < least))
			least = p->pid;
	return least;
}

void tracer_leave_changed(struct tracer *t)
{
	u64 end_ns = clock_now_ns() + LEAVE_NS;
	bool is_left = t->options.changer;

	while (is_left) {
		is_left = false;
		for (pid_t pid = pid_after(t, 0); pid; pid = pid_after(t, pid))
			is_left |= tracer_change_leave(t, pid) == -EAGAIN;
		is_left = is_left && tracer_change_go_on(t, end_ns);
	}
}

void tracer_note_maker(const struct tracer *t, struct tracer_thread *th)
{
	if (!t->options.changer || !t->maker || th->role != ROLE_MEMBER ||
	    inject_thread_pointer(&th->maker_pointer, t->maker))
		th->maker_pointer = 0;
}

void tracer_look_for_twin(struct tracer *t, struct tracer_thread *th)
{
	struct process_event ev = {
		.h = { .kind = EVENT_LOSSES, .flags = EVENT_TWIN, .pid = (u32)th->process->pid }
	};
	u64 maker = th->maker_pointer, own;

	th->maker_pointer = 0;
	if (!maker || inject_thread_pointer(&own, th->tid) || own != maker)
		return;
	if (!tracer_report_event(t, th, &ev))
		th->process->losses->other++;
}

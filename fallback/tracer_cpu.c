/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Keeps the tracer and the thread that stops most on one CPU: to wake another CPU costs several times a stop. */
#include <sched.h>

#include "fallback/tracer_steps.h"
#include "user/lib/clock.h"
#include "user/lib/proc.h"

enum {
	CPU_LOOK = 16,
	CPU_LOOK_MAX = 1024,
	CPU_LOOK_SAME = 64 /* stops between looks at where a thread runs */
};
enum { CPU_MOVE = 4 };
/* A thread that makes so many stops in a row in so short a time is tied. Short programs never are. */
enum { TIE_STOPS = 1024, TIE_NS = 1000 * 1000 * 1000 };

static bool is_on_one_cpu(const cpu_set_t *set, int cpu)
{
	return CPU_COUNT(set) == 1 && CPU_ISSET((size_t)cpu, set);
}

/* Let @tid, which has our mask, run where the tied thread might. A mask that is no longer ours stays. */
static void give_back(const struct tracer_tie *tie, pid_t tid)
{
	cpu_set_t now;

	if (!sched_getaffinity(tid, sizeof(now), &now) && is_on_one_cpu(&now, tie->cpu) &&
	    sched_setaffinity(tid, sizeof(tie->mask), &tie->mask))
		return; /* it has ended */
}

void tracer_untie(struct tracer *t, pid_t tid)
{
	if (!t->tie.tid || t->tie.tid != tid)
		return;
	give_back(&t->tie, tid);
	t->tie.tid = 0;
}

void tracer_untie_child(struct tracer *t, pid_t parent, pid_t child)
{
	if (t->tie.tid && t->tie.tid == parent)
		give_back(&t->tie, child);
}

void tracer_untie_exec(struct tracer *t, pid_t former, pid_t tid)
{
	if (!t->tie.tid || t->tie.tid != former)
		return;
	t->tie.tid = tid;
	tracer_untie(t, tid);
}

/* Run the tracer on @cpu, if it is allowed to. */
static bool move_tracer(struct tracer *t, int cpu)
{
	cpu_set_t set;

	if (cpu < 0 || cpu >= CPU_SETSIZE)
		return false;
	CPU_ZERO(&set);
	CPU_SET((size_t)cpu, &set);
	if (cpu != t->cpu && sched_setaffinity(0, sizeof(set), &set))
		return false;
	t->cpu = cpu;
	return true;
}

/*
 * Have @th run on the tracer's CPU only. Else the kernel wakes it on an idle CPU, however often the tracer moves. One
 * thread at a time is tied: others may compute while it is stopped.
 */
static void tracer_cpu_tie(struct tracer *t, const struct tracer_thread *th)
{
	int cpu = proc_thread_cpu(th->process->pid, th->tid);
	cpu_set_t set;

	tracer_untie(t, t->tie.tid);
	if (sched_getaffinity(th->tid, sizeof(t->tie.mask), &t->tie.mask) || CPU_COUNT(&t->tie.mask) < 2 ||
	    !move_tracer(t, cpu) || !CPU_ISSET((size_t)cpu, &t->tie.mask))
		return;
	CPU_ZERO(&set);
	CPU_SET((size_t)cpu, &set);
	/* We may not be allowed to change it. */
	if (sched_setaffinity(th->tid, sizeof(set), &set))
		return;
	t->tie.tid = th->tid;
	t->tie.cpu = cpu;
}

/* A tied thread that has set a mask of its own keeps it, and is left alone from now on. */
static void respect_own_mask(struct tracer *t, struct tracer_thread *th)
{
	cpu_set_t now;

	if (sched_getaffinity(th->tid, sizeof(now), &now) || is_on_one_cpu(&now, t->tie.cpu))
		return;
	th->has_own_mask = true;
	t->tie.tid = 0;
}

/* Count the stops that @th makes in a row. */
static void tie_if_busy(struct tracer *t, struct tracer_thread *th)
{
	struct tracer_tie *busy = &t->tie;

	if (busy->busy_tid != th->tid) {
		busy->busy_tid = th->tid;
		busy->nr_stops = 0;
	}
	if (!busy->nr_stops++)
		busy->since_ns = clock_now_ns();
	if (busy->nr_stops < TIE_STOPS)
		return;
	busy->nr_stops = 0;
	if (busy->tid == th->tid)
		respect_own_mask(t, th);
	else if (!th->has_own_mask && clock_now_ns() - busy->since_ns < TIE_NS)
		tracer_cpu_tie(t, th);
}

/*
 * Look where @th runs. A look costs as much as a stop. Where the kernel has an idle CPU for the thread, it wakes the
 * thread there: then looks become rare.
 */
static void look_for_cpu(const struct tracer *t, struct tracer_thread *th)
{
	if (th->look_in--)
		return;
	th->cpu = proc_thread_cpu(th->process->pid, th->tid);
	if (th->cpu == t->cpu)
		th->look_all = CPU_LOOK_SAME;
	else if (!th->look_all || th->look_all == CPU_LOOK_SAME)
		th->look_all = CPU_LOOK;
	else if (th->look_all < CPU_LOOK_MAX)
		th->look_all *= 2;
	th->look_in = th->look_all;
}

void tracer_follow_cpu(struct tracer *t, struct tracer_thread *th)
{
	tie_if_busy(t, th);
	look_for_cpu(t, th);
	if (th->cpu == t->last_cpu) {
		t->nr_same_cpu++;
	} else {
		t->last_cpu = th->cpu;
		t->nr_same_cpu = 0;
	}
	if (th->cpu < 0 || th->cpu == t->cpu || t->nr_same_cpu < CPU_MOVE || th->tid == t->tie.tid)
		return;
	tracer_untie(t, t->tie.tid);
	if (!move_tracer(t, th->cpu))
		t->nr_same_cpu = 0;
}

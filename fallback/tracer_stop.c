/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Stops all threads of a process: for a leak scan, for a step over a breakpoint, before a detach. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "arch/stop.h"
#include "fallback/tracer_steps.h"
#include "user/lib/clock.h"

enum { POLL_NS = 50 * 1000, HOLD_SHARE = 4, STEP_TRIES = 64, OTHERS = 16 };
enum { MASK_BYTES = _NSIG / 8 }; /* of the kernel's signal masks */

static const u64 detach_ns = 2000ULL * 1000 * 1000;
static const u64 step_ns = 2000ULL * 1000 * 1000;

static bool all_rest(const struct tracer_process *p)
{
	for (const struct tracer_thread *th = p->threads; th; th = th->next)
		if (!thread_state_is_at_rest(th->state))
			return false;
	return true;
}

static void ask_all(const struct tracer_process *p)
{
	for (const struct tracer_thread *th = p->threads; th; th = th->next)
		if (!thread_state_is_at_rest(th->state))
			ptrace(PTRACE_INTERRUPT, th->tid, 0, 0);
}

/*
 * Take what has happened to the threads of @p that are not at rest. To wait for any thread the kernel looks at all
 * of them: with 10,000 threads, one wait for each stop took 3 s.
 */
static void pump_each(struct tracer *t, const struct tracer_process *p)
{
	pid_t pid = p->pid;

	/* A thread that ends takes the last one to its place, which the next round looks at. */
	for (size_t i = 0; i < t->nr_threads && tracer_find_process(t, pid) == p; i++) {
		const struct tracer_thread *th = t->threads[i];
		pid_t tid = th->tid;
		int status;

		if (th->process == p && !thread_state_is_at_rest(th->state) &&
		    waitpid(tid, &status, __WALL | WNOHANG) == tid)
			tracer_dispatch(t, tid, status);
	}
}

/* Processes may end meanwhile: so @p is looked up by its PID. */
int tracer_stop_all(struct tracer *t, struct tracer_process *p, u64 max_ns)
{
	u64 end = clock_now_ns() + max_ns;
	pid_t pid = p->pid;

	p->nr_holds++;
	ask_all(p);
	do {
		pump_each(t, p);
		/* Children that are new, and other processes. */
		for (int i = 0; i < OTHERS && tracer_find_process(t, pid) == p && !all_rest(p); i++)
			if (!tracer_pump(t))
				break;
		if (tracer_find_process(t, pid) != p)
			return -ESRCH;
		if (all_rest(p))
			return 0;
	} while (clock_pause(POLL_NS, end));
	return -ETIME;
}

void tracer_unhold(struct tracer *t, struct tracer_process *p)
{
	p->nr_holds--;
	if (p->nr_holds)
		return;
	for (struct tracer_thread *th = p->threads; th; th = th->next) {
		if (!th->needs_step)
			continue;
		tracer_step(t, p);
		return;
	}
	tracer_resume_all(t, p);
}

int tracer_hold(struct tracer *t, pid_t pid, u64 max_ns)
{
	struct tracer_process *p = tracer_find_process(t, pid);
	int err;

	if (!p)
		return -ESRCH;
	if (p->hold_end_ns)
		return -EBUSY;
	err = tracer_stop_all(t, p, max_ns);
	if (err == -ESRCH)
		return err;
	if (err) {
		tracer_unhold(t, p);
		return err;
	}
	p->hold_end_ns = clock_now_ns() + HOLD_SHARE * max_ns;
	tracer_arm(t);
	return 0;
}

void tracer_release(struct tracer *t, pid_t pid)
{
	struct tracer_process *p = tracer_find_process(t, pid);

	if (!p || !p->hold_end_ns)
		return;
	p->hold_end_ns = 0;
	tracer_unhold(t, p);
}

/* Wait for an event of @tid, which runs. Signals for the guardian interrupt the wait, and have to wait themselves. */
static int tracer_stop_await(pid_t tid, int *status)
{
	pid_t seen;

	do
		seen = waitpid(tid, status, __WALL);
	while (seen < 0 && errno == EINTR);
	return seen == tid ? 0 : -ESRCH;
}

/* For CPUs without a single step: run to a breakpoint behind the instruction. Waits for the next stop. */
static int run_to(struct tracer_process *p, struct tracer_thread *th, taddr_t addr, int *status)
{
	struct place place = { .addr = addr };
	struct places one;
	int err;

	places_init(&one, p->cpu, p->places.memory);
	err = places_add(&one, &place);
	/* A breakpoint that is there already does as well. */
	if (err && err != -EEXIST)
		return err;
	if (ptrace(PTRACE_CONT, th->tid, 0, 0) || tracer_stop_await(th->tid, status))
		err = -ESRCH;
	places_clean(&one, &one.memory);
	places_fini(&one);
	return err == -EEXIST ? 0 : err;
}

/* Run the instruction at @b, whose code was put back. 0 and *@status as wait(2) gives it, or -errno. */
static int run_one(struct tracer *t, struct tracer_thread *th, const struct breakpoint *b, int *status)
{
	struct tracer_process *p = th->process;
	size_t len;

	if (p->cpu->has_step) {
		if (ptrace(PTRACE_SINGLESTEP, th->tid, 0, 0))
			return -errno;
		return tracer_stop_await(th->tid, status);
	}
	len = cpu_insn_length(p->cpu, &t->regs, b->original, b->nr_original);
	return len ? run_to(p, th, cpu_get(p->cpu, &t->regs, CPU_PC) + len, status) : -ENOTSUP;
}

static bool is_at(struct tracer *t, const struct tracer_thread *th, const struct breakpoint *b)
{
	const struct cpu *cpu = th->process->cpu;

	return !cpu_regs_read(&t->regs, th->tid) &&
	       (cpu_get(cpu, &t->regs, CPU_PC) & ~(taddr_t)b->is_thumb) == b->addr;
}

static bool is_fault(int sig)
{
	return sig == SIGSEGV || sig == SIGBUS || sig == SIGILL || sig == SIGFPE;
}

/*
 * Block signals until the instruction of @tid, which is stopped, has run: only one of several signals could be handed
 * on, and without its siginfo. Signals that the instruction itself may cause are not blocked. False where the kernel
 * cannot do this (before Linux 3.11); else tracer_stop_unblock() puts @mask back.
 */
static bool block_signals(pid_t tid, sigset_t *mask)
{
	static const u8 own[] = { SIGTRAP, SIGSEGV, SIGBUS, SIGILL, SIGFPE };
	bool is_big = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
	sigset_t all;

	if (ptrace(PTRACE_GETSIGMASK, tid, (void *)(uintptr_t)MASK_BYTES, mask))
		return false;
	memset(&all, 0xff, sizeof(all));
	for (size_t i = 0; i < ARRAY_SIZE(own); i++) {
		sigdelset(&all, own[i]);
		/* A 64-bit kernel has the two halves in the other order. */
		if (is_big && sizeof(long) == 4)
			sigdelset(&all, own[i] + 32);
	}
	return !ptrace(PTRACE_SETSIGMASK, tid, (void *)(uintptr_t)MASK_BYTES, &all);
}

/* Fails only if the thread was killed. */
static void tracer_stop_unblock(pid_t tid, sigset_t *mask)
{
	ptrace(PTRACE_SETSIGMASK, tid, (void *)(uintptr_t)MASK_BYTES, mask);
}

/* Run one instruction of @th, while all other threads of the process are stopped. False if @th has ended. */
static bool step_one(struct tracer *t, struct tracer_thread *th, const struct breakpoint *b)
{
	pid_t tid = th->tid;
	int status, sig = th->sig;

	for (int i = 0; i < STEP_TRIES; i++) {
		if (run_one(t, th, b, &status))
			break;
		if (!WIFSTOPPED(status)) {
			tracer_dispatch(t, tid, status);
			return false;
		}
		if (stop_signal(status) == SIGTRAP)
			break;
		/* A signal came first, or the instruction caused it. */
		if (stop_signal(status))
			sig = stop_signal(status);
		if (!is_at(t, th, b) || is_fault(sig))
			break;
	}
	th->sig = sig;
	return true;
}

/* Set the program counter back if the breakpoint behind the instruction was hit. */
static void take_back_trap(struct tracer *t, const struct tracer_thread *th, const struct breakpoint *b)
{
	const struct cpu *cpu = th->process->cpu;
	taddr_t pc;

	if (cpu->has_step || !cpu->trap_skip || is_at(t, th, b))
		return;
	pc = cpu_get(cpu, &t->regs, CPU_PC) - cpu->trap_skip;
	cpu_set(cpu, &t->regs, CPU_PC, pc);
	if (cpu_regs_write(&t->regs, th->tid))
		return;
}

static struct tracer_thread *next_to_step(const struct tracer_process *p)
{
	struct tracer_thread *th = p->threads;

	while (th && !th->needs_step)
		th = th->next;
	return th;
}

static void step_over(struct tracer *t, struct tracer_thread *th)
{
	struct tracer_process *p = th->process;
	const struct breakpoint *found;
	struct breakpoint b;
	bool is_blocked;
	sigset_t mask;

	th->needs_step = false;
	if (cpu_regs_read(&t->regs, th->tid))
		return;
	found = places_find(&p->places, places_address(&p->places, cpu_get(p->cpu, &t->regs, CPU_PC)));
	if (!found)
		return;
	b = *found;
	if (places_lift(&p->places, &b))
		return;
	is_blocked = block_signals(th->tid, &mask);
	/* If the thread has ended with its process, the breakpoint has gone, too. */
	if (!step_one(t, th, &b))
		return;
	if (is_blocked)
		tracer_stop_unblock(th->tid, &mask);
	take_back_trap(t, th, &b);
	if (places_lower(&p->places, &b))
		p->losses->other++;
}

void tracer_step(struct tracer *t, struct tracer_process *p)
{
	pid_t pid = p->pid;
	struct tracer_thread *th;
	int err = tracer_stop_all(t, p, step_ns);

	if (err == -ESRCH)
		return;
	/* A thread that does not stop is deep in the kernel. To miss a breakpoint is better than to wait longer. */
	if (err)
		p->losses->other++;
	while (tracer_find_process(t, pid) == p && (th = next_to_step(p)))
		step_over(t, th);
	if (tracer_find_process(t, pid) == p)
		tracer_unhold(t, p);
}

/* Make @th report the breakpoint that it has hit: after a detach the SIGTRAP would kill it. */
static void take_trap(struct tracer *t, struct tracer_thread *th)
{
	pid_t tid = th->tid;
	int status, sig = th->sig;

	if (th->state != THREAD_STOPPED ||
	    (!stop_hides_signal(tid, SIGTRAP) && (IS_AGENT || !tracer_trap_is_hit(th))))
		return;
	if (ptrace(PTRACE_CONT, tid, 0, 0) || tracer_stop_await(tid, &status))
		return;
	tracer_dispatch(t, tid, status);
	th = tracer_find_thread(t, tid);
	if (th && thread_state_is_stopped(th->state) && !th->sig)
		th->sig = sig;
}

static void take_traps(struct tracer *t, struct tracer_process *p)
{
	for (struct tracer_thread *th = p->threads, *next; th; th = next) {
		next = th->next;
		take_trap(t, th);
	}
}

void tracer_detach_process(struct tracer *t, struct tracer_process *p)
{
	if (tracer_stop_all(t, p, detach_ns) == -ESRCH)
		return;
	take_traps(t, p);
	tracer_check(t, p->pid);
	places_clean(&p->places, &p->places.memory);
	for (struct tracer_thread *th = p->threads; th; th = th->next)
		if (thread_state_is_stopped(th->state))
			stop_end(th->tid, th->stop, PTRACE_DETACH, th->sig);
	tracer_drop_process(t, p);
}

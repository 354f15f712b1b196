/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A process that has code is stopped in a call: its thread is led out of the piece, to where the program goes on. */
#include "user/source/inline_wish.h"

#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "arch/cpu.h"
#include "arch/stop_all.h"
#include "inline/shape.h"
#include "user/lib/clock.h"
#include "user/lib/log.h"
#include "user/source/inline_target.h"

enum { STOP_NS = 1000 * 1000 * 1000, MOST_STEPS = 20000 };

/* The short ways of the piece for calls of most functions do not look for wishes. */
static void inline_wish_set_shapes(struct piece_shared *s, bool are_on)
{
	for (u32 i = 0; i < PIECE_MAX_PROBES; i++) {
		u64 shape = are_on ? piece_shape_of(&s->probes[i].call) : SHAPE_OTHER;

		if (s->probes[i].shape != shape)
			__atomic_store_n(&s->probes[i].shape, shape, __ATOMIC_RELAXED);
	}
}

void inline_wish_begin(struct inline_target *t, const struct call_wish *wish)
{
	inline_wish_set_shapes(t->shared, false);
	call_wish_set(&t->shared->wish.call, wish);
}

/* Is the thread @th in the piece, or in a stub of it? False if that cannot be found out. */
static bool inline_wish_is_inside(const struct inline_target *t, const struct stopped_thread *th)
{
	const struct cpu *cpu;
	struct cpu_regs regs;

	return !cpu_of_thread(&cpu, th->tid) && !cpu_regs_read(&regs, th->tid) &&
	       inject_has_code_at(t->in, cpu_get(cpu, &regs, CPU_PC));
}

/* Lead @th out of the piece, one instruction after the other. False: a signal is in the way, or it takes too long. */
static bool inline_wish_step_out(const struct inline_target *t, struct stopped_thread *th)
{
	int status;

	if (th->state != STOP_TAKEN || th->stop != STOP_ASKED)
		return false;
	for (u32 i = 0; i < MOST_STEPS && !th->sig && inline_wish_is_inside(t, th); i++) {
		if (ptrace(PTRACE_SINGLESTEP, th->tid, 0, 0) || waitpid(th->tid, &status, __WALL) != th->tid)
			return false;
		if (!WIFSTOPPED(status)) {
			th->state = STOP_ENDED;
			return false;
		}
		th->stop = stop_of(status);
		th->sig = th->stop == STOP_TRAP && stop_code(th->tid) > 0 ? 0 : stop_signal(status);
	}
	return !th->sig && !inline_wish_is_inside(t, th);
}

static bool inline_wish_stop(struct inline_target *t)
{
	struct stopped_threads all = { .pid = t->pid, .by = STOP_BY_US };
	pid_t tid = (pid_t)inline_target_tid(t, t->shared->wish.ring);
	int err = stop_all_begin(&all, clock_now_ns() + STOP_NS);
	bool is_in_call = !err && __atomic_exchange_n(&t->shared->wish.is_met, 0, __ATOMIC_SEQ_CST);
	bool is_out = false;

	if (err) {
		debug("inline: PID %d: not stopped in its call: %s", t->pid, strerror(-err));
		__atomic_store_n(&t->shared->wish.is_met, 0, __ATOMIC_SEQ_CST);
		return false;
	}
	for (size_t i = 0; i < all.nr && is_in_call; i++)
		if (all.threads[i].tid == tid)
			is_out = inline_wish_step_out(t, &all.threads[i]);
	/* The signal takes effect in each thread before that runs on. */
	if (is_out)
		is_out = !kill(t->pid, SIGSTOP);
	stop_all_end(&all);
	return is_out;
}

bool inline_wish_end(struct inline_target *t)
{
	bool is_stopped = t->shared && call_wish_set(&t->shared->wish.call, NULL) && inline_wish_stop(t);

	if (t->shared)
		inline_wish_set_shapes(t->shared, true);
	return is_stopped;
}

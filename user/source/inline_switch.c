/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Stops a process outside of all calls that breakpoints see. */
#include "user/source/inline_switch.h"

#include <errno.h>

#include "arch/cpu.h"
#include "user/lib/clock.h"
#include "user/source/probe_taker.h"

/* A thread in a call stops where it leaves that, unless it blocks the signal, or goes on by a jump. */
#define STEP_NS	     10000000ULL
#define SETTLE_NS    300000000ULL
#define LATE_WAIT_NS 1000000000ULL
#define POLL_NS	     1000000ULL

struct stop_outside {
	const struct source *bpf;
	const struct target *target;
};

static bool is_in_call(void *ctx, const struct stopped_thread *t)
{
	const struct stop_outside *o = ctx;
	const struct cpu *cpu;
	struct cpu_regs regs;

	/* The thread is not stopped, or will end. */
	if (cpu_of_thread(&cpu, t->tid) || cpu_regs_read(&regs, t->tid))
		return true;
	return source_bpf_is_in_call(o->bpf, o->target, t->tid, cpu_get(cpu, &regs, CPU_PC),
				     cpu_get(cpu, &regs, CPU_SP));
}

static bool any_in_call(const struct stopped_threads *all, struct stop_outside *o)
{
	for (size_t i = 0; i < all->nr; i++)
		if (is_in_call(o, &all->threads[i]))
			return true;
	return false;
}

int inline_switch_stop(struct stopped_threads *all, const struct source *bpf, const struct target *t)
{
	struct stop_outside o = { bpf, t };
	u64 end_ns = clock_now_ns() + SETTLE_NS;
	int err;

	/* Threads of an earlier try have not stopped yet. */
	if (all->nr && stop_all_release(all))
		return -EAGAIN;
	*all = (struct stopped_threads){ .pid = t->pid, .by = STOP_BY_US, .is_switch = true };
	source_bpf_leave_calls(bpf, t->pid, true);
	err = stop_all_begin(all, end_ns);
	/* The others wait meanwhile: none of them holds a lock of an allocator. */
	while (!err && (stop_all_running(all) || any_in_call(all, &o)))
		err = clock_now_ns() < end_ns ? stop_all_step(all, is_in_call, &o, STEP_NS, end_ns) : -ETIME;
	source_bpf_leave_calls(bpf, t->pid, false);
	if (err)
		stop_all_release(all);
	return err == -ETIME ? -EAGAIN : err;
}

void inline_switch_fini(struct stopped_threads *all)
{
	u64 end_ns = clock_now_ns() + LATE_WAIT_NS;

	while (all->nr && stop_all_release(all) && clock_pause(POLL_NS, end_ns))
		;
	stop_all_forget(all);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The source below the inline source: opened together with the guard, and the one by BPF. */
#include "user/source/inline_life.h"

#include <errno.h>

#include "arch/cpu.h"
#include "user/lib/clock.h"
#include "user/lib/log.h"
#include "user/source/inline_source.h"
#include "user/source/inline_stacks.h"
#include "user/source/call_price.h"
#include "user/source/inline_target.h"
#include "user/source/inline_wish.h"
#include "user/source/probe_taker.h"

/* Stops a process outside of all calls that breakpoints see. */

/* A thread in a call stops where it leaves that, unless it blocks the signal, or goes on by a jump. */
#define STEP_NS	     10000000ULL
#define SETTLE_NS    300000000ULL
#define LATE_WAIT_NS 1000000000ULL
#define POLL_NS	     1000000ULL

enum { MANY_TARGETS = 8 };

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

/* The end: waits up to a second for threads that have not stopped. */
static void inline_switch_fini(struct stopped_threads *all)
{
	u64 end_ns = clock_now_ns() + LATE_WAIT_NS;

	while (all->nr && stop_all_release(all) && clock_pause(POLL_NS, end_ns))
		;
	stop_all_forget(all);
}

const struct inline_life inline_life_bpf = {
	.ops = &source_bpf,
	.advice = "--backend bpf",
	.place_again = source_bpf_place_again,
	.has_shared = source_bpf_has_shared,
	.number = source_bpf_number,
	.unwatch = source_bpf_unwatch_code,
};

int inline_life_open(struct inline_source *s, struct source_options *to, const struct caps *caps)
{
	int err;

	s->breakpoint_ns = call_by_bpf_ns(&caps->way);
	/* The guard comes first, because it has a part in the process that traces, or that keeps links. */
	err = guard_new(&s->guard);
	if (err)
		return err;
	to->changer = guard_changer(s->guard);
	err = s->life->ops->create(&s->below, to, caps);
	if (err || !s->life->have_changed)
		return err;
	s->life->have_changed(s->below, &s->tracer);
	guard_set_tracer(s->guard, &s->tracer);
	return 0;
}

int inline_life_measure(struct source *source, bool is_on, struct probe_runs *out)
{
	const struct inline_source *s = (const struct inline_source *)(const void *)source;

	return s->is_used ? -EOPNOTSUPP : source_bpf.measure(s->below, is_on, out);
}

int inline_life_rest(struct source *source, struct target *target, bool is_on)
{
	const struct inline_source *s = (const struct inline_source *)(const void *)source;
	const struct inline_target *t = inline_source_find(s, target->pid);

	/* Code that does nothing costs little. */
	if (t && t->sight != INLINE_AWAITS_CODE && t->sight != INLINE_DECLINED)
		return -EOPNOTSUPP;
	return source_bpf.rest(s->below, target, is_on);
}

void inline_life_limit_samples(struct source *source, u32 sum)
{
	((struct inline_source *)(void *)source)->sample_sum = sum;
}

void inline_life_keep_files(struct source *source, bool *is_used)
{
	const struct inline_source *s = (const struct inline_source *)(const void *)source;

	source_bpf.keep_files(s->below, is_used);
	for (size_t i = 0; i < s->nr_targets; i++)
		if (s->targets[i]->stacks)
			inline_stacks_keep(s->targets[i]->stacks, is_used);
}

void inline_life_sleep(struct source *source, bool is_asleep)
{
	const struct inline_source *s = (const struct inline_source *)(const void *)source;

	for (size_t i = 0; i < s->nr_targets; i++)
		inline_target_sleep(s->targets[i], is_asleep);
}

enum source_way inline_life_way(const struct source *source, pid_t pid)
{
	const struct inline_source *s = (const struct inline_source *)(const void *)source;
	const struct inline_target *t = inline_source_find(s, pid);

	if (t && t->sight <= INLINE_AWAITS_CODE)
		return t->sight == INLINE_AWAITS_CODE ? SOURCE_AWAITS_CODE : SOURCE_BY_CODE;
	return source_bpf.way(s->below, pid);
}

bool inline_life_wait_for(struct source *source, const struct call_wish *wish)
{
	struct inline_source *s = (struct inline_source *)(void *)source;
	pid_t pid = wish ? (pid_t)wish->pid : s->wished_pid;
	struct inline_target *t = inline_source_find(s, pid);

	/* BPF sees the calls of a process without code. */
	if (wish ? !t || !t->shared || t->sight != INLINE_SEES : !pid)
		return source_bpf.wait_for(s->below, wish);
	s->wished_pid = wish ? pid : 0;
	if (!wish)
		return t && inline_wish_end(t);
	inline_wish_begin(t, wish);
	return false;
}

int inline_life_kernel_words(const struct source *source, pid_t pid, int (*add)(void *ctx, taddr_t word),
			     void *ctx)
{
	return source_bpf.kernel_words(((const struct inline_source *)(const void *)source)->below, pid, add,
				       ctx);
}

static size_t inline_life_count(const struct inline_source *s)
{
	size_t nr = 0;

	for (size_t i = 0; i < s->nr_targets; i++)
		nr += s->targets[i]->in->state == INJECT_IN;
	return nr;
}

/* Take the code out of those that let it go at once. */
static void inline_life_take_out_many(struct inline_source *s)
{
	size_t nr = inline_life_count(s);

	if (nr < MANY_TARGETS)
		return;
	guard_take_out_many(s->guard);
	debug("inline: the code is out of %zu of %zu processes at once", nr - inline_life_count(s), nr);
}

void inline_life_take_out(struct inline_source *s)
{
	inline_switch_fini(&s->stopped);
	for (size_t i = 0; i < s->nr_targets && !s->is_detached; i++)
		if (s->life->unwatch)
			s->life->unwatch(s->below, s->targets[i]->pid);
	if (!s->is_detached)
		inline_life_take_out_many(s);
	for (size_t i = 0; i < s->nr_targets && !s->is_detached; i++)
		inline_target_take_out(s->targets[i]);
	courtesy_hurry_end(&s->hurry);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A thread at a breakpoint: do what the place is for, then carry out the instruction under the breakpoint. */
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arch/stop.h"
#include "bpf/call_met.h"
#include "fallback/copied_code.h"
#include "fallback/tracer_steps.h"
#include "user/lib/clock.h"

/*
 * Stop the process if somebody waits for this call: SIGSTOP takes the place of the SIGTRAP of the breakpoint. Who waits
 * stops the process himself if he finds the event first.
 */
static void tracer_place_meet_wish(const struct tracer *t, const struct heap_event *ev)
{
	struct call_wish *w = t->options.wish;
	u32 pid = ev->h.pid;

	if (w && t->thread->stop == STOP_TRAP && !t->thread->sig &&
	    __atomic_load_n(&w->pid, __ATOMIC_SEQ_CST) == pid && call_wish_is_for(w, ev) &&
	    __atomic_compare_exchange_n(&w->pid, &pid, 0, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		t->thread->sig = SIGSTOP;
}

static bool send_event(void *ctx, struct heap_event *ev)
{
	struct tracer *t = ctx;
	const struct tracer_process *p = t->thread->process;
	bool is_sent;

	ev->h.pid = (u32)p->pid;
	ev->h.tid = (u32)t->thread->tid;
	ev->time_ns = clock_now_ns();
	/* life_send() counts a loss. */
	is_sent = t->host.record && t->host.record(t->host.ctx, ev, sizeof(*ev), false);
	if (!IS_AGENT && is_sent)
		tracer_place_meet_wish(t, ev);
	return is_sent;
}

static u64 tracer_place_take_stack(void *ctx)
{
	struct tracer *t = ctx;

	return tracer_take_stack(t, t->thread->process);
}

static struct call tracer_place_call_of(struct tracer *t, struct tracer_thread *th, u32 probe)
{
	return (struct call){ .thread = &th->inflight,
			      .probes = t->probes,
			      .nr_probes = t->nr_probes,
			      .probe = probe,
			      .cpu = th->process->cpu,
			      .regs = &t->regs,
			      .memory = &t->memory,
			      .losses = th->process->losses,
			      .ctx = t,
			      .send = send_event,
			      .take_stack = tracer_place_take_stack,
			      .sampled = !IS_AGENT && t->options.sample_bytes ? &th->process->sampled : NULL,
			      .sample_mean = IS_AGENT ? 0 : t->options.sample_bytes,
			      .random = IS_AGENT ? NULL : &t->options.random,
			      .has_free_stacks = t->options.has_free_stacks };
}

void tracer_send_end(struct tracer *t, struct tracer_thread *th)
{
	const struct call c = tracer_place_call_of(t, th, 0);

	t->thread = th;
	inflight_end(&c);
}

/* Put a breakpoint where the call that begins here returns to, if its end is seen there. */
static void watch_return(struct tracer *t, struct tracer_thread *th, const struct call *c)
{
	struct place place = { .probe = c->probe, .kind = PLACE_RETURN };
	struct tracer_process *p = th->process;

	/* The end of a call that is not recorded need not be seen. */
	if (!IS_AGENT && c->sampled && !th->inflight.nr)
		return;
	if (c->probe >= t->nr_probes || !(t->probes[c->probe].flags & PROBE_AT_RETURN) ||
	    cpu_call_return(p->cpu, &t->regs, &t->memory, &place.addr))
		return;
	if (places_add(&p->places, &place))
		p->losses->other++;
}

/* Does a call of @th return to @addr, whose end is to be seen? */
static bool returns_to(const struct tracer_thread *th, taddr_t addr)
{
	for (u32 i = 0; i < th->inflight.nr; i++) {
		const struct inflight_level *l = &th->inflight.levels[i];

		if (l->ret == addr)
			return true;
		for (u32 k = 0; k < l->nr_inner; k++)
			if (l->inner[k].ret == addr)
				return true;
	}
	return false;
}

/* A call has returned to @addr. Most calls that do are no samples: unless others are to be seen there, forget it. */
static void unwatch_return(struct tracer_process *p, taddr_t addr, u32 probe)
{
	for (const struct tracer_thread *th = p->threads; th; th = th->next)
		if (returns_to(th, addr))
			return;
	places_remove(&p->places, addr, PLACE_RETURN, probe);
}

/* A call begins or ends at a place; the tracer's own places are not for this. */
static void use_call(struct tracer *t, struct tracer_thread *th, const struct place_use *use)
{
	const struct call c = tracer_place_call_of(t, th, use->probe);
	const struct cpu *cpu = th->process->cpu;
	taddr_t sp = cpu_get(cpu, &t->regs, CPU_SP);

	switch (use->kind) {
	case PLACE_RET:
		inflight_leave(&c, sp);
		break;
	case PLACE_RETURN:
		inflight_leave(&c, cpu->has_link ? sp : sp - cpu->word_size);
		if (!IS_AGENT && c.sampled)
			unwatch_return(th->process, cpu_get(cpu, &t->regs, CPU_PC), use->probe);
		break;
	case PLACE_INTERNAL_CALL:
		inflight_internal_call(&c);
		break;
	case PLACE_ENTER_FREE:
		inflight_enter_free(&c);
		watch_return(t, th, &c);
		break;
	default:
		inflight_enter_alloc(&c);
		watch_return(t, th, &c);
		break;
	}
}

/* Carry out the instruction under @b. If it cannot be emulated, it must run in its place. */
static void pass_over(struct tracer *t, struct tracer_thread *th, const struct breakpoint *b)
{
	const struct cpu *cpu = th->process->cpu;

	th->needs_step = cpu_emulate(cpu, &t->regs, b->original, b->nr_original, &t->memory) != 0;
}

/*
 * clone() begins. The kernel tells no tracer of a task that it makes with CLONE_UNTRACED: it would run into the
 * breakpoints in its copy of the memory, and end by SIGTRAP. Without this flag the task is a child like any other.
 */
static void at_clone(struct tracer *t, struct tracer_process *p)
{
	enum { FLAGS = 3 }; /* clone(function, stack, flags, ...) */
	taddr_t flags;

	if (cpu_call_arg(p->cpu, &t->regs, &t->memory, FLAGS, &flags) || !(flags & CLONE_UNTRACED))
		return;
	if (cpu_call_set_arg(p->cpu, &t->regs, &t->memory, FLAGS, flags & ~(taddr_t)CLONE_UNTRACED))
		p->losses->other++;
}

/* @b is a copy, because other breakpoints may come and go meanwhile. */
static void do_uses(struct tracer *t, struct tracer_thread *th, const struct breakpoint *b)
{
	const struct tracer_process *p = th->process;

	for (u8 i = 0; i < b->nr_uses; i++) {
		if (b->uses[i].kind == PLACE_HOOK)
			tracer_report(t, th, EVENT_MAPS);
		else if (b->uses[i].kind == PLACE_CLONE)
			at_clone(t, th->process);
		else if (!IS_AGENT && b->uses[i].kind == PLACE_MASK)
			tracer_trap_at_mask(t, th);
		else if (!IS_AGENT && b->uses[i].kind == PLACE_ACTION)
			tracer_trap_at_action(t, th->process);
		else if (b->uses[i].kind == PLACE_EXIT || b->uses[i].kind == PLACE_LEAK_CHECK)
			th->is_watched = places_have(&p->places, PLACE_LEAK_CHECK);
		else if (b->uses[i].kind == PLACE_START)
			tracer_at_start(t, th);
		else if (b->uses[i].kind == PLACE_NOTE)
			tracer_at_note(t, th, b->uses[i].probe);
		else if (p->calls == CALLS_SEEN)
			use_call(t, th, &b->uses[i]);
	}
}

/*
 * The kernel itself sends SIGTRAP because of an instruction. If one of the program's waits already, because the thread
 * blocks the signal, the kernel drops its own, and reports that one: it is sent again, and waits.
 */
bool tracer_at_place(struct tracer *t, struct tracer_thread *th)
{
	struct tracer_process *p = th->process;
	bool blocks_trap = !IS_AGENT && th->blocks_trap, is_own = stop_code(th->tid) > 0;
	const struct breakpoint *found;
	struct breakpoint b;
	taddr_t addr;

	if (!p->cpu || cpu_regs_read(&t->regs, th->tid) || (!is_own && !blocks_trap) ||
	    !places_hit(&p->places, &t->regs, &addr))
		return false;
	if (!is_own)
		th->sig = SIGTRAP;
	if (blocks_trap)
		stop_block(th->tid, SIGTRAP);
	found = places_find(&p->places, addr);
	if (found) {
		b = *found;
		tracer_look_at(t, th);
		tracer_follow_cpu(t, th);
		do_uses(t, th, &b);
		/* The breakpoint may have gone meanwhile. */
		if (places_find(&p->places, addr))
			pass_over(t, th, &b);
	}
	/* Fails only if the thread was killed. */
	if (cpu_regs_write(&t->regs, th->tid))
		th->needs_step = false;
	return true;
}

bool tracer_at_copy(struct tracer *t, struct tracer_thread *th)
{
	struct tracer_process *p = th->process;
	struct copied_code c;

	if (!p->cpu || cpu_regs_read(&t->regs, th->tid) || stop_code(th->tid) <= 0 ||
	    copied_code_read(&c, p->cpu, &t->regs, &p->places.memory))
		return false;
	for (size_t i = 0; i < p->places.nr; i++) {
		const struct breakpoint *b = &p->places.list[i];

		copied_code_try(&c, b->addr, b->original, b->nr_original);
	}
	if (copied_code_mend(&c, &t->regs, &p->places.memory) || cpu_regs_write(&t->regs, th->tid))
		return false;
	/* Calls of the copy are not seen. */
	p->losses->other++;
	return true;
}

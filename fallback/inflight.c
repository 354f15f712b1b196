/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The adaptor of call/life.h for the tracer: a thread at a breakpoint, its registers and memory read by ptrace. */
#include "fallback/inflight.h"

#define LIFE_SAMPLES (!IS_AGENT)
#include "call/sample.h"

static u64 call_sp(const struct call *c)
{
	return cpu_get(c->cpu, c->regs, CPU_SP);
}

static u64 call_ip(const struct call *c)
{
	return cpu_get(c->cpu, c->regs, CPU_PC);
}

static u64 call_return_address(const struct call *c, const struct call_probe *p)
{
	taddr_t ret;

	(void)p;
	return cpu_call_return(c->cpu, c->regs, c->memory, &ret) ? 0 : ret;
}

static u64 call_arg(const struct call *c, const struct call_probe *p, u8 n)
{
	taddr_t arg;

	(void)p;
	return cpu_call_arg(c->cpu, c->regs, c->memory, n, &arg) ? 0 : arg;
}

static u64 call_result(const struct call *c, const struct call_probe *p)
{
	(void)p;
	return cpu_get(c->cpu, c->regs, CPU_RESULT);
}

static u64 call_sp_inside(const struct call *c, const struct call_probe *p)
{
	(void)p;
	return c->cpu->has_link ? call_sp(c) : call_sp(c) - c->cpu->word_size;
}

static u64 call_read_word(const struct call *c, const struct call_probe *p, u64 addr)
{
	u8 bytes[8];

	(void)p;
	return c->memory->read(c->memory->ctx, addr, bytes, c->cpu->word_size) ? 0 : cpu_word(c->cpu, bytes);
}

/* Ends of calls are seen by breakpoints in the code: nothing of ours lies on the target's stack. */
static bool call_has_trampolines(const struct call *c)
{
	(void)c;
	return false;
}

static bool call_is_trampoline(const struct call *c, u64 ret)
{
	(void)c;
	(void)ret;
	return false;
}

static const struct call_probe *call_probe_at(const struct call *c, u32 index)
{
	return index < c->nr_probes ? &c->probes[index] : NULL;
}

static bool call_send(const struct call *c, const struct inflight *t, const struct heap_event *ev)
{
	struct heap_event copy = *ev;

	if (LIFE_SAMPLES && !sample_note(c, t, ev))
		return false;
	return c->send(c->ctx, &copy);
}

static u64 call_take_stack(const struct call *c, const struct inflight *t, const struct call_probe *p,
			   u32 how)
{
	(void)t;
	(void)p;
	(void)how;
	return c->take_stack(c->ctx);
}

static void call_count_loss(const struct call *c, const struct inflight *t, enum call_loss loss, u32 nr)
{
	(void)t;
	if (loss == CALL_LOSS_ALLOC)
		c->losses->allocs += nr;
	else if (loss == CALL_LOSS_FREE)
		c->losses->frees += nr;
	else
		c->losses->abandoned += nr;
}

/* ---- the adaptor of call/sample.h ---- */

static bool sample_is_on(const struct call *c)
{
	return c->sampled;
}

static u64 sample_mean(const struct call *c)
{
	return c->sample_mean;
}

static u64 sample_number(const struct call *c)
{
	return sample_random(c->random);
}

static bool sample_add(const struct call *c, const struct inflight *t, u64 addr)
{
	(void)t;
	return sampled_add(c->sampled, addr);
}

static bool sample_take(const struct call *c, const struct inflight *t, u64 addr)
{
	(void)t;
	return sampled_take(c->sampled, addr);
}

static u8 call_choose(const struct call *c, struct inflight *t, const struct call_probe *p)
{
	return sample_choose(c, t, p);
}

static bool call_is_followed(const struct call_probe *p)
{
	return sample_is_followed(p);
}

static bool call_chooses_free(const struct call *c, struct inflight *t, const struct call_probe *p, u64 addr)
{
	return sample_chooses_free(c, t, p, addr);
}

void inflight_enter_alloc(const struct call *c)
{
	const struct call_probe *p = call_probe_at(c, c->probe);

	if (p)
		life_enter_alloc(c, c->thread, c->probe, p, true);
}

void inflight_enter_free(const struct call *c)
{
	const struct call_probe *p = call_probe_at(c, c->probe);

	if (p)
		life_enter_free(c, c->thread, c->probe, p, c->has_free_stacks);
}

void inflight_internal_call(const struct call *c)
{
	const struct call_probe *p = call_probe_at(c, c->probe);

	if (p)
		life_internal_call(c, c->thread, c->probe, p);
}

void inflight_leave(const struct call *c, taddr_t sp)
{
	const struct call_probe *p = call_probe_at(c, c->probe);

	if (p)
		life_leave(c, c->thread, c->probe, p, sp);
}

void inflight_end(const struct call *c)
{
	life_end(c, c->thread);
}

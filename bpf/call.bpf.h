/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The adaptor of call/life.h for the kernel: a thread at a uprobe is the registers that the kernel hands over. */
#pragma once

#include "bpf/sampled.bpf.h"
#include "bpf/stack.bpf.h"
#include "call/sample.h"

/* How to take a stack: life_enter_alloc(), life_enter_free(). */
enum stack_how { STACK_BY_LOOP = 1, STACK_UNROLLED };

/* struct call is never defined: it stands for the kernel's registers. */
static __always_inline const struct call *call_at(struct pt_regs *ctx)
{
	return (const struct call *)ctx;
}

static __always_inline u64 word_bytes(const struct call_probe *p)
{
	return p->flags & PROBE_32BIT ? 4 : 8;
}

static __always_inline u64 call_sp(const struct call *c)
{
	return REGS_SP(c);
}

static __always_inline u64 call_ip(const struct call *c)
{
	return REGS_IP(c);
}

static __always_inline u64 call_read_word(const struct call *c, const struct call_probe *p, u64 addr)
{
	u64 word = 0;

	if (p->flags & PROBE_32BIT)
		bpf_probe_read_user(&word, 4, (void *)addr);
	else
		bpf_probe_read_user(&word, 8, (void *)addr);
	return word;
}

static __always_inline u64 call_return_address(const struct call *c, const struct call_probe *p)
{
	return HAS_LINK ? CODE_ADDRESS(REGS_LINK(c)) : call_read_word(c, p, REGS_SP(c));
}

static __always_inline u64 call_arg(const struct call *c, const struct call_probe *p, u8 n)
{
	if (p->flags & PROBE_32BIT)
		return call_read_word(c, p, REGS_SP(c) + 4 * n);
	if (n == 1)
		return REGS_ARG1(c);
	if (n == 2)
		return REGS_ARG2(c);
	return n == 3 ? REGS_ARG3(c) : REGS_ARG4(c);
}

static __always_inline u64 call_result(const struct call *c, const struct call_probe *p)
{
	u64 result = REGS_RESULT(c);

	return p->flags & PROBE_32BIT ? (u32)result : result;
}

static __always_inline u64 call_sp_inside(const struct call *c, const struct call_probe *p)
{
	return REGS_CALL_SP(c, word_bytes(p));
}

static __always_inline bool call_has_trampolines(const struct call *c)
{
	return true;
}

/* The kernel's trampoline is the first byte of a page; no call returns there. */
static __always_inline bool call_is_trampoline(const struct call *c, u64 ret)
{
	return !(ret & 4095);
}

static __always_inline const struct call_probe *call_probe_at(const struct call *c, u32 index)
{
	return bpf_map_lookup_elem(&probes, &index);
}

static __always_inline bool call_send(const struct call *c, const struct inflight *t,
				      const struct heap_event *ev)
{
	return sample_note(c, t, ev) && send_heap_event(t, ev);
}

static __always_inline u64 call_take_stack(const struct call *c, const struct inflight *t,
					   const struct call_probe *p, u32 how)
{
	return stack_take((const struct pt_regs *)c, t, word_bytes(p), how == STACK_BY_LOOP, STACK_ABOVE);
}

static __always_inline void call_count_loss(const struct call *c, const struct inflight *t,
					    enum call_loss loss, u32 nr)
{
	struct process_state *process = process_of(t->pid);

	if (!process)
		return;
	if (loss == CALL_LOSS_ALLOC)
		count_losses(&process->lost_allocs, nr);
	else if (loss == CALL_LOSS_FREE)
		count_losses(&process->lost_frees, nr);
	else
		count_losses(&process->abandoned, nr);
}

/* ---- the adaptor of call/sample.h ---- */

static __always_inline bool sample_is_on(const struct call *c)
{
	return config.max_sampled != 0;
}

static __always_inline u64 sample_mean(const struct call *c)
{
	return state.sample_bytes;
}

static __always_inline u64 sample_number(const struct call *c)
{
	return (u64)bpf_get_prandom_u32() << 32 | bpf_get_prandom_u32();
}

static __always_inline bool sample_add(const struct call *c, const struct inflight *t, u64 addr)
{
	return sampled_add(t->pid, addr);
}

static __always_inline bool sample_take(const struct call *c, const struct inflight *t, u64 addr)
{
	return sampled_take(t->pid, addr);
}

static __always_inline u8 call_choose(const struct call *c, struct inflight *t, const struct call_probe *p)
{
	return sample_choose(c, t, p);
}

static __always_inline bool call_is_followed(const struct call_probe *p)
{
	return sample_is_followed(p);
}

static __always_inline bool call_chooses_free(const struct call *c, struct inflight *t,
					      const struct call_probe *p, u64 addr)
{
	return sample_chooses_free(c, t, p, addr);
}

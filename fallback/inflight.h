/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Calls of one thread that have begun and not ended, and the events that they make. The same rules as
 * bpf/inflight.bpf.h, but nothing of ours lies on the target's stack: a call that arrived by a jump has the return
 * address of the one that jumped.
 */
#pragma once

#include "arch/cpu.h"
#include "bpf/event.h"
#include "fallback/probe.h"

enum { INFLIGHT_LEVELS = 4, INFLIGHT_INNER = 8 };

struct inflight_inner {
	u64 ip, ret;
	u32 depth; /* bytes of stack from the request's sp down to its own */
	u32 probe;
};

/* One request by the program that is under way. */
struct inflight_level {
	u64 sp; /* at entry: with the thread, the call's identity */
	u64 ip; /* of the place */
	u64 ret, size, old, out, stack;
	u32 probe;
	u32 nr_inner;
	struct inflight_inner inner[INFLIGHT_INNER]; /* that it is in, outermost first */
	u8 state;				     /* enum inflight_state */
	u8 flags;				     /* of the probe */
};

/* Of one thread; all zero at its beginning. */
struct inflight {
	u32 nr;
	u64 last_alloc; /* block of its latest allocation, 0 after a free of it */
	struct inflight_level levels[INFLIGHT_LEVELS];
};

/* A thread that stands at a place, and who is told. */
struct inflight_call {
	struct inflight *thread;
	const struct call_probe *probes;
	u32 nr_probes;
	u32 probe; /* whose place it is */
	const struct cpu *cpu;
	const struct cpu_regs *regs;
	const struct cpu_memory *memory;
	struct call_losses *losses;
	void *ctx;
	/* Send the event, all of it filled in but process, thread and time. False if it was lost (and counted). */
	bool (*send)(void *ctx, struct heap_event *ev);
	/* Take the stack: its id, STACK_NONE or STACK_LOST. */
	u64 (*take_stack)(void *ctx);
	bool has_free_stacks; /* of releases too */
};

/* At PLACE_ENTER_ALLOC, PLACE_ENTER_FREE, PLACE_INTERNAL_CALL. */
void inflight_enter_alloc(const struct inflight_call *c);
void inflight_enter_free(const struct inflight_call *c);
void inflight_internal_call(const struct inflight_call *c);

/* The call whose stack pointer at entry was @sp has its result in the registers. */
void inflight_leave(const struct inflight_call *c, taddr_t sp);

/* The thread has ended, in the middle of what it did. */
void inflight_end(const struct inflight_call *c);

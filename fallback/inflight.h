/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The calls of a traced thread, and the events that they make: call/life.h for a thread that has stopped at a place. */
#pragma once

#include "arch/cpu.h"
#include "bpf/event.h"
#include "call/inflight.h"
#include "call/probe.h"
#include "fallback/probe.h"
#include "fallback/sampled.h"

/* A thread that has stopped at a place, and who gets its events. */
struct call {
	struct inflight *thread;
	const struct call_probe *probes;
	u32 nr_probes;
	u32 probe; /* whose place it is */
	const struct cpu *cpu;
	const struct cpu_regs *regs;
	const struct cpu_memory *memory;
	struct call_losses *losses;
	void *ctx;
	/* Send the event after filling in process, thread and time. False if there is no room for it. */
	bool (*send)(void *ctx, struct heap_event *ev);
	/* Take the stack: its id, STACK_NONE or STACK_LOST. */
	u64 (*take_stack)(void *ctx);
	struct sampled *sampled; /* of the process; NULL = all calls are recorded */
	u64 sample_mean;	 /* mean distance of samples */
	u64 *random;		 /* state of the generator (call/distance.h) */
	bool has_free_stacks;	 /* take the stacks of releases, too */
};

/* At PLACE_ENTER_ALLOC, PLACE_ENTER_FREE, PLACE_INTERNAL_CALL. */
void inflight_enter_alloc(const struct call *c);
void inflight_enter_free(const struct call *c);
void inflight_internal_call(const struct call *c);

/* A call ends, with its result in the registers; @sp is its stack pointer at entry. */
void inflight_leave(const struct call *c, taddr_t sp);

/* The thread has ended. Calls that it was in are abandoned. */
void inflight_end(const struct call *c);

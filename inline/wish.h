/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A call that heaptap waits for: behind the record of it, its thread waits until heaptap has stopped the process. */
#pragma once

#include "bpf/call_met.h"
#include "inline/wait.h"

/* The last record in @r is of a call by @fn with @stack. Never on the short ways: there is none while heaptap waits. */
static __attribute__((noinline)) void wish_meet(const struct piece_ring *r, u8 kind, u16 fn, u64 stack)
{
	const struct heap_event ev = { .h = { .kind = kind, .fn = fn }, .stack = stack };
	struct piece_shared *s = region_shared();
	struct piece_wish *w = &s->wish;
	struct piece_wait wait = wait_begin();
	u32 pid = w->call.pid, met = 1;

	if (!pid || !call_wish_is_for(&w->call, &ev) ||
	    !__atomic_compare_exchange_n(&w->call.pid, &pid, 0, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		return;
	w->ring = (u32)(r - s->rings);
	__atomic_store_n(&w->is_met, 1, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&w->is_met, __ATOMIC_RELAXED) && wait_goes_on(&wait))
		;
	wait_end(&wait);
	/* A stop that comes later does not find the thread in its call. */
	__atomic_compare_exchange_n(&w->is_met, &met, 0, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

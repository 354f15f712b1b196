/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A call that its process is to be stopped at: the console tells the BPF programs, or the tracer. */
#pragma once

#ifndef __bpf__ /* the BPF programs define these types in bpf/compat.bpf.h */
#include "user/lib/types.h"
#endif

enum { CALL_WISH_WORDS = 4 };

/*
 * The next allocation or release by process @pid in a function whose bit is set in @fns (fn of struct heap_event), with
 * stack @stack unless that is 0. Who stops the process sets @pid to 0.
 */
struct call_wish {
	u32 pid; /* 0 = none */
	u32 reserved;
	u64 stack;
	u64 fns[CALL_WISH_WORDS];
};

#ifndef __bpf__
/* Wait for @wish (NULL: none) in place of @now. True: that was met. */
static inline bool call_wish_set(struct call_wish *now, const struct call_wish *wish)
{
	bool was_met = !__atomic_exchange_n(&now->pid, 0, __ATOMIC_SEQ_CST);

	if (wish) {
		now->stack = wish->stack;
		for (int i = 0; i < CALL_WISH_WORDS; i++)
			now->fns[i] = wish->fns[i];
		__atomic_store_n(&now->pid, wish->pid, __ATOMIC_SEQ_CST);
	}
	return was_met;
}
#endif

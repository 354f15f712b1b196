/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Is a call the one that its process is to be stopped at? */
#pragma once

#include "bpf/call_wish.h"
#include "bpf/event.h"

/* Is @ev, a call of the process that @w is for, the call that it waits for? */
static inline __attribute__((always_inline)) bool call_wish_is_for(const struct call_wish *w,
								   const struct heap_event *ev)
{
	u8 kind = ev->h.kind;
	u32 fn = ev->h.fn;

	return (kind == EVENT_ALLOC || kind == EVENT_REALLOC_END || kind == EVENT_FREE) &&
	       w->fns[fn / 64 % CALL_WISH_WORDS] & 1ULL << fn % 64 && (!w->stack || w->stack == ev->stack);
}

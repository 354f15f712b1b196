/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Purposes of breakpoints: the places where calls of probed functions begin and end. */
#pragma once

#include "user/lib/types.h"

/* The purpose of a place. Where one address has several, the ends of calls come first. */
enum place_kind {
	PLACE_RET,	     /* a ret instruction of the function */
	PLACE_RETURN,	     /* where calls of functions return to; made by the tracer itself */
	PLACE_INTERNAL_CALL, /* a call of free that the C library makes for itself; probe is the free's */
	PLACE_ENTER_FREE,
	PLACE_ENTER_ALLOC,
	PLACE_NOTE,	  /* a marker of the program; probe is the index of the marker */
	PLACE_HOOK,	  /* where the dynamic linker reports changes */
	PLACE_EXIT,	  /* exit() */
	PLACE_CLONE,	  /* clone() of the C library */
	PLACE_MASK,	  /* sigprocmask() of the C library */
	PLACE_ACTION,	  /* sigaction() of the C library */
	PLACE_LEAK_CHECK, /* LeakSanitizer, which is going to trace the process, begins to look for leaks */
	PLACE_START, /* the program's entry point, while the dynamic linker works; made by the tracer itself */
	NR_PLACE_KINDS
};

struct place {
	taddr_t addr; /* bit 0 set for Thumb code */
	u32 probe;    /* index */
	u32 kind;     /* enum place_kind */
};

/* Losses of a process. Counters only grow. */
struct call_losses {
	u64 allocs, frees, stacks, other;
	u64 abandoned;	/* calls that never returned: longjmp, killed threads */
	u64 unfollowed; /* children that were to be traced and are not */
};

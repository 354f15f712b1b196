/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What breakpoints are for: functions of allocators, and the places where their calls begin and end. */
#pragma once

#include "user/lib/types.h"

/* As enum alloc_kind, user/allocator.h; user/source_ptrace.c asserts that they agree. */
enum call_kind { CALL_MALLOC, CALL_REALLOC, CALL_OUT, CALL_FREE, CALL_MMAP, CALL_MREMAP, CALL_MUNMAP };

/* As enum probe_flag, bpf/maps.h. */
enum call_flag {
	CALL_RETURNS =
		1, /* the end of the call is seen: at its ret instructions, else at its return address */
	CALL_DELEGATES = 2,  /* the work is done by another probed function called from its own body */
	CALL_THROWS = 8,     /* a call whose end is not seen has thrown */
	CALL_AT_RETURN = 16, /* no ret instructions are known: its end is where it returns to */
};

/* One probed function. */
struct call_probe {
	u16 fn;					  /* row of the allocator table */
	u8 kind;				  /* enum call_kind */
	u8 flags;				  /* enum call_flag */
	u8 size_arg, count_arg, old_arg, out_arg; /* positions from 1, 0 = none */
	u32 own_before; /* bytes from the place back to where calls from "inside" begin ... */
	u32 own_after; /* ... and on to where they end: the function itself if it delegates, else its module's code */
};

/* What happens at a place. Of several at one address the ends of calls come first. */
enum place_kind {
	PLACE_RET,	     /* a ret instruction of the function */
	PLACE_RETURN,	     /* where calls of functions return to; made on the way, not asked for */
	PLACE_INTERNAL_CALL, /* a call of free that the C library makes for itself; probe is the free's */
	PLACE_ENTER_FREE,
	PLACE_ENTER_ALLOC,
	PLACE_HOOK,  /* where the dynamic linker tells of changes */
	PLACE_START, /* the program's entry point, while the dynamic linker works; made by the tracer itself */
	NR_PLACE_KINDS
};

struct place {
	taddr_t addr; /* bit 0 set for Thumb code */
	u32 probe;    /* index */
	u32 kind;     /* enum place_kind */
};

/* What could not be delivered of a process. Counters only grow. */
struct call_losses {
	u64 allocs, frees, stacks, other;
	u64 abandoned;	/* calls that never returned: longjmp, killed threads */
	u64 unfollowed; /* children that were to be traced and are not */
};

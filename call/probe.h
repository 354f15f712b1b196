/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One probed function of an allocator: what it does, where its arguments are, and how the end of a call is seen. */
#pragma once

#ifndef __bpf__ /* the BPF programs define these types in bpf/compat.bpf.h */
#include "user/lib/types.h"
#endif

/* The work of a function, which decides the events of a call of it. Part of the recording format: append only. */
enum alloc_kind {
	ALLOC_MALLOC,  /* returns a block of size (times count) bytes */
	ALLOC_REALLOC, /* moves a block */
	ALLOC_OUT,     /* returns 0 and stores the block through a pointer (posix_memalign) */
	ALLOC_FREE,    /* releases a block */
	ALLOC_MMAP,    /* returns a mapping, -1 on failure */
	ALLOC_MREMAP,  /* moves a mapping, -1 on failure */
	ALLOC_MUNMAP,  /* releases a range of addresses */
	ALLOC_RESIZE, /* changes the size of a block in its place, and returns the size it has then (xallocx) */
	ALLOC_DESTROY, /* releases all blocks of a heap at once (mi_heap_destroy): which ones is not known */
	ALLOC_DELETE, /* releases a heap, whose blocks stay (mi_heap_delete), or what a thread has of the allocator */
	NR_ALLOC_KINDS
};

static inline bool alloc_kind_ends_heap(u8 kind)
{
	return kind == ALLOC_DESTROY || kind == ALLOC_DELETE;
}

static inline bool alloc_kind_releases(u8 kind)
{
	const u32 kinds = 1 << ALLOC_FREE | 1 << ALLOC_MUNMAP | 1 << ALLOC_DESTROY | 1 << ALLOC_DELETE;

	return kinds >> (kind & 31) & 1;
}

enum probe_flag {
	PROBE_RETURNS =
		1, /* the end of a call is seen: by a uretprobe, or by probes on its ret instructions */
	PROBE_DELEGATES = 2,  /* another probed function, called from its own body, does the work */
	PROBE_32BIT = 4,      /* arguments on the stack, words of 4 bytes */
	PROBE_THROWS = 8,     /* a call whose end is not seen has thrown or caught an exception */
	PROBE_AT_RETURN = 16, /* no ret instructions are known: the end is seen where the call returns to */
	PROBE_WRAPS =
		32, /* a program's own operator, or the end of a heap: not all that happens inside is its request */
	PROBE_STEPPED =
		64, /* the CPU makes a single step at the place: the kernel does not emulate the instruction */
};

/* One probed function, as the life of a call (call/life.h) needs it. */
struct call_probe {
	u16 fn;					  /* row of the allocator table */
	u8 kind;				  /* enum alloc_kind */
	u8 flags;				  /* enum probe_flag */
	u8 size_arg, count_arg, old_arg, out_arg; /* positions from 1, 0 = none */
	u8 align_arg;
	u8 reserved[3];
	/*
	 * Calls from the code around the probe are made by the allocator itself: bytes from the probe back to where
	 * this code begins, and on to where it ends. A delegate's own code is the function; else that of the module.
	 */
	u32 own_before, own_after;
};

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The books of one process: live blocks, counters per caller, peak, anomalies. */
#pragma once

#include "bpf/event.h"
#include "user/allocator.h"

struct heap;

/* Sums over all callers. Bytes are those asked for. */
struct heap_totals {
	u64 allocs, frees; /* blocks that came and went; realloc of a live block is one of each */
	u64 alloc_bytes;
	u64 live_blocks, live_bytes;
	u64 peak_bytes, peak_time_ns;
	u64 temporary; /* freed by their thread before it allocated again */
	u64 failed_allocs;
	u64 unknown_frees; /* of blocks never seen: from before the attach, or foreign */
	u64 collisions;	   /* an alloc at a live address: its free was lost, repaired */
	u64 first_time_ns, last_time_ns;
};

/* What one caller (stack, function) did. */
struct heap_row {
	u64 stack; /* stack id */
	u16 fn;	   /* allocator function */
	u64 allocs, frees, alloc_bytes;
	u64 live_blocks, live_bytes;
	u64 peak_bytes; /* held by this row when the process had its peak */
	u64 temporary;
};

/* One live block. */
struct heap_block {
	taddr_t addr;
	u64 size;	/* bytes asked for */
	u64 time_ns;	/* CLOCK_MONOTONIC, to the millisecond */
	u32 row;	/* index for heap_row_get() */
	bool is_unsure; /* a free may have been lost since it was allocated */
};

int heap_new(struct heap **out) __must_check;
void heap_free(struct heap *h);

/*
 * Enter one event (EVENT_ALLOC to EVENT_REALLOC_END) in the books.
 * Returns 0, -EINVAL for another kind, or -ENOMEM: then the event is counted as lost (heap_lost()).
 */
int heap_event(struct heap *h, const struct heap_event *ev) __must_check;

/* A free may have been lost: every block alive now becomes unsure. */
void heap_taint(struct heap *h);

/* Events that could not be entered for want of memory. */
u64 heap_lost(const struct heap *h);

struct heap_totals heap_totals(const struct heap *h);
u64 heap_calls(const struct heap *h, u16 fn); /* calls of one function */

/* Rows 0..heap_row_count()-1, in order of first use. */
size_t heap_row_count(const struct heap *h);
struct heap_row heap_row_get(const struct heap *h, u32 row);

/* Each live block once, in no order; @visit returns 0 to go on, else its value is returned. */
int heap_for_each_block(const struct heap *h, int (*visit)(void *ctx, const struct heap_block *block),
			void *ctx);

/* Bytes of memory that the books use now. */
u64 heap_memory(const struct heap *h);

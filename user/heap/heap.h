/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The heap of one process, as its events tell it: live blocks, counters per caller, the peak, wrong releases.
 *
 * In comes one struct heap_event after the other (bpf/event.h). Out come sums and rows for reports, and live blocks for
 * leak scans (user/scan/scan.h). Nothing here waits, reads a target or logs. One thread uses a heap at a time.
 *
 * Life: heap_new(); settings; heap_event(), heap_taint() and heap_expect_gaps() for lost ones; heap_end(); heap_free().
 */
#pragma once

#include "bpf/event.h"
#include "user/target/allocator.h"

/*
 * At any time: live_blocks == allocs - frees; live_bytes is the sum over the live blocks; each total is the
 * sum over the rows; no two blocks have the same address.
 *
 * A block in a realloc is *pending*. The address is free from the entry on, because another thread may get it before
 * the call returns. Until then the block counts as live, and is_pending and is_unsure are set. A call that never
 * returns (thread killed, longjmp) leaves its block pending until the address is allocated or freed again.
 *
 * A mapping made by mmap or mremap is a block too. munmap may take parts of it: then each piece that is left is
 * visited by itself, and the block is freed with its last piece. heap_pool.c: two blocks may begin at one address.
 */
struct heap;
struct timeline_point;

/* Sums over all callers. Bytes are the bytes that the program asked for. */
struct heap_totals {
	u64 allocs, frees; /* a realloc of a live block is one of each */
	u64 alloc_bytes;
	u64 live_blocks, live_bytes;
	u64 peak_bytes, peak_time_ns;
	u64 temporary;	   /* blocks that their thread freed before it allocated another one */
	u64 failed_allocs; /* calls that returned no block */
	u64 unknown_frees; /* of blocks that were never seen: from before the attach, or of another allocator */
	u64 collisions;	   /* an address was allocated while live: its free was lost. Repaired */
	u64 lost_ends;	   /* reallocs settled without their return; the source counts a lost free for each */
	u64 first_time_ns, last_time_ns;
};

/* One caller: a stack and an allocator function. */
struct heap_row {
	u64 stack; /* stack id: user/heap/stacks.h */
	u16 fn;	   /* allocator function: user/target/allocator.h */
	u64 allocs, frees, alloc_bytes, live_blocks, live_bytes;
	u64 peak_bytes, temporary; /* bytes at the peak of the process */
	double spread;		   /* variance of alloc_bytes; 0 = they are exact */
	u32 nr_folded;		   /* callers that have become this one: user/heap/fold.h */
};

/* One live block, or one piece of a block that munmap split. */
struct heap_block {
	taddr_t addr;
	u64 size;	 /* bytes asked for, at most 2^47 - 1 */
	u64 order;	 /* the higher, the later it was allocated; changes with later events */
	u64 time_ns;	 /* of its allocation, CLOCK_MONOTONIC, exact to the millisecond */
	u32 row;	 /* for heap_row_get() */
	u32 thread;	 /* that allocated it, for heap_thread() */
	u32 whole;	 /* part of a mapping that munmap has split: a number of the mapping; else 0 */
	bool is_ignored; /* heap_ignore() */
	bool is_unsure, is_pending; /* its free may have been lost; it is in a realloc that goes on */
	u8 is_more, distance;	    /* for heap_block_worth() */
};

/*
 * A heap without blocks. *@out is owned by the caller: heap_free(). Events name functions by their rows in @fns, which
 * is borrowed for the life of the heap. 0 or -ENOMEM.
 */
int heap_new(struct heap **out, const struct alloc_table *fns) __must_check;
void heap_free(struct heap *h);

/*
 * The heap of a child after fork(): *@out is a copy of @h, owned by the caller. Pending blocks are live and unsure in
 * the copy, because the threads that would settle them do not exist in the child. 0 or -ENOMEM.
 */
int heap_clone(struct heap **out, const struct heap *h) __must_check;

/* Settings. Limit heap_memory() to @bytes; 0 = no limit. Events that need more get -ENOMEM and are lost. */
void heap_set_limit(struct heap *h, u64 bytes);
/* Note from now on the bytes that blocks cover, for heap_cover(). Takes 1/128 of these bytes in memory. */
void heap_keep_cover(struct heap *h);
void heap_note_cover(struct heap *h, const struct heap_event *ev); /* of an event that is not entered */
/*
 * Check each release from now on: is its function of the family that allocated the block? With @is_complete, all
 * blocks were seen from the start of the process: is there a block at all? 0 or -ENOMEM.
 */
int heap_check(struct heap *h, bool is_complete) __must_check;
/* Blocks that nobody saw may exist: count releases of unknown blocks as unsure, do not call them wrong. */
void heap_check_gaps(struct heap *h);
/* A release of no known block is the allocator's own, and right, if @is_own says so of its stack. */
void heap_check_own(struct heap *h, bool (*is_own)(const void *ctx, u64 stack), const void *ctx);
/* Do not compare the families of these functions, one bit each: they are not known (struct target). */
void heap_check_blur(struct heap *h, const u64 blurred[ALLOC_MAX_FNS / 64]);

/*
 * Enter one event, EVENT_ALLOC to EVENT_REALLOC_END. 0; -EINVAL for another kind; -ENOMEM: the event is lost and
 * counts in heap_lost(). Even then the call is counted and a pending block is settled.
 */
int heap_event(struct heap *h, const struct heap_event *ev) __must_check;
/* Load the memory that heap_event() needs for @ev into the cache. Best about 8 events ahead. */
void heap_prefetch(const struct heap *h, const struct heap_event *ev);
/* Events were lost, perhaps returns of calls: from now on, a thread's next call ends its pending realloc. */
void heap_expect_gaps(struct heap *h);
/* A free may have been lost: make every live block unsure. Cheap, whatever the number of blocks. */
void heap_taint(struct heap *h);
/* The process has ended. After heap_expect_gaps() this settles all pending blocks. */
void heap_end(struct heap *h);

/* Count only blocks allocated from now on: older ones leave all sums. Once in a life, not with heap_check(). */
void heap_span_begin(struct heap *h);
/* Stop counting blocks and calls that are new. Frees of blocks of the span still count. */
void heap_span_end(struct heap *h);
/* Reading. */
const struct alloc_table *heap_functions(const struct heap *h);
struct heap_totals heap_totals(const struct heap *h);
/* @nr releases of unknown blocks, all so far, were counted elsewhere: the totals have them, too. */
void heap_set_unseen_frees(struct heap *h, u64 nr);
u64 heap_live_bytes(const struct heap *h);
/* Point @i of live bytes over time (user/heap/timeline.h), from 0. False behind the last one. */
bool heap_timeline(const struct heap *h, size_t i, struct timeline_point *out);
u64 heap_calls(const struct heap *h, u16 fn); /* calls of one allocator function */
u64 heap_lost(const struct heap *h);	      /* events that got -ENOMEM */
u64 heap_pending(const struct heap *h);	      /* blocks in reallocs that have not returned */
u64 heap_memory(const struct heap *h);	      /* bytes of memory that @h uses */

/* Rows 0 to heap_row_count() - 1, in order of first use. A row that does not exist is all zero. */
size_t heap_row_count(const struct heap *h);
struct heap_row heap_row_get(const struct heap *h, u32 row);
/* The live block that begins at @addr and is not pending. False if no block begins there. */
bool heap_find(const struct heap *h, taddr_t addr, struct heap_block *out);
/* Is the block at @addr in a realloc of thread @tid that has not returned, and was it live before? */
bool heap_is_pending(const struct heap *h, u32 tid, taddr_t addr);
/* Visit each live block once, in no order. Stops when @visit returns another value than 0, and returns that value. */
int heap_for_each_block(const struct heap *h, int (*visit)(void *ctx, const struct heap_block *block),
			void *ctx);

/* The program says that the block at @addr, if one is there, is no leak. 0 or -ENOMEM. */
int heap_ignore(struct heap *h, taddr_t addr) __must_check;
/* Wrong releases in order of first sight; borrowed until the next event. */
const struct misuse *heap_misuses(const struct heap *h, size_t *nr);
struct misuse_counts heap_misuse_counts(const struct heap *h);
bool heap_is_checked(const struct heap *h); /* heap_check() was called */
bool heap_is_blurred(const struct heap *h); /* the family of some function is not known */
/* The bytes that blocks have covered. NULL if they are not complete: not noted, a realloc is pending, or gaps. */
const struct cover_map *heap_cover(const struct heap *h);

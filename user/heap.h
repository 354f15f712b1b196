/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The books of one process: live blocks, counters per caller, peak, anomalies. */
#pragma once

#include "bpf/event.h"
#include "user/allocator.h"
#include "user/misuse.h"

/*
 * Always true: live_blocks == allocs - frees; live_bytes is the sum over the blocks; each total is the
 * sum over the rows.
 *
 * A realloc takes its block out at entry (another thread may get the address before it returns) and
 * settles it at return. In between the block is *pending*: counted as live, visited with is_pending and
 * is_unsure set. If the call never returns (thread killed, longjmp) it stays so, until its address is freed
 * or allocated again: each proves that it is gone. No two blocks ever share an address.
 *
 * What mmap and mremap return are blocks of their own kind: munmap may take parts of them, one that is
 * split is visited once per piece, and it counts as freed when its last piece is gone.
 */
struct heap;
struct cover_map;

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
	u64 lost_ends; /* reallocs that were settled without their end: the source counts a lost free for each */
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

/* One live block, or piece of one that munmap split. */
struct heap_block {
	taddr_t addr;
	u64 size;	 /* bytes asked for; at most 2^48 - 1, what is above is not counted anywhere */
	u64 time_ns;	 /* CLOCK_MONOTONIC, to the millisecond */
	u32 row;	 /* index for heap_row_get() */
	bool is_unsure;	 /* a free may have been lost since it was allocated */
	bool is_pending; /* in a realloc that did not return */
};

int heap_new(struct heap **out) __must_check;
void heap_free(struct heap *h);

/*
 * The books of a child at its fork: a copy of @h, owned by the caller. Pending blocks are live and unsure
 * in it, for the threads that hold them do not exist there. 0 or -ENOMEM.
 */
int heap_clone(struct heap **out, const struct heap *h) __must_check;

/* Most bytes that the books may use (heap_memory()); events beyond are lost by -ENOMEM. 0 = no limit. */
void heap_set_limit(struct heap *h, u64 bytes);

/* Note which bytes blocks cover (cover_map.h); before the first event. Takes 1/128 of what they span. */
void heap_keep_cover(struct heap *h);

/*
 * Enter one event (EVENT_ALLOC to EVENT_REALLOC_END) in the books.
 * Returns 0, -EINVAL for another kind, or -ENOMEM: then the event is counted as lost (heap_lost()).
 * A call that is lost so still counts as a call; the old block of a realloc is settled.
 */
int heap_event(struct heap *h, const struct heap_event *ev) __must_check;

/* @ev will be entered soon: begin to load what it needs. Some 8 events ahead is right. */
void heap_prefetch(const struct heap *h, const struct heap_event *ev);

/* Events have been lost, results of calls among them: a realloc without an end is over when its thread goes on. */
void heap_expect_gaps(struct heap *h);

/* The process has ended, no thread goes on any more: with gaps to expect, all reallocs are over. */
void heap_end(struct heap *h);

/* A free may have been lost: every block alive now becomes unsure. Cheap. */
void heap_taint(struct heap *h);

/*
 * Count only what is allocated from now on, as if tracing began: blocks of before leave the numbers, their frees are
 * known and not counted. Once; not together with heap_check().
 */
void heap_span_begin(struct heap *h);
/* What is allocated from now on is not counted; frees of what is are. Calls and failures are counted no more. */
void heap_span_end(struct heap *h);

/*
 * Look at each release from now on: was it of the right family, and, if @is_complete (all blocks of the process have
 * been seen), of a block at all? Once unknown blocks may exist (heap_expect_gaps(), heap_check_gaps()) those are
 * no longer found wrong but counted. 0 or -ENOMEM.
 */
int heap_check(struct heap *h, bool is_complete) __must_check;
void heap_check_gaps(struct heap *h);
/* Functions, by bit, whose family is not known: struct target. */
void heap_check_blur(struct heap *h, const u64 blurred[ALLOC_MAX_FNS / 64]);
bool heap_is_checked(const struct heap *h);
bool heap_is_blurred(const struct heap *h); /* some functions are */

/* What was wrong, in order of first sight; borrowed until the next event. */
const struct misuse *heap_misuses(const struct heap *h, size_t *nr);
struct misuse_counts heap_misuse_counts(const struct heap *h);

/* Events that could not be entered for want of memory. */
u64 heap_lost(const struct heap *h);

/* Blocks in reallocs that did not return. */
u64 heap_pending(const struct heap *h);

struct heap_totals heap_totals(const struct heap *h);
u64 heap_live_bytes(const struct heap *h);
u64 heap_calls(const struct heap *h, u16 fn); /* calls of one function */

/* Rows 0..heap_row_count()-1, in order of first use. */
size_t heap_row_count(const struct heap *h);
/* All zero for a row that does not exist. */
struct heap_row heap_row_get(const struct heap *h, u32 row);

/* The live block, not pending, that begins at @addr, of malloc's kind or else mmap's. False if none does. */
bool heap_find(const struct heap *h, taddr_t addr, struct heap_block *out);

/* Each live block once, in no order; @visit returns 0 to go on, else its value is returned. */
int heap_for_each_block(const struct heap *h, int (*visit)(void *ctx, const struct heap_block *block),
			void *ctx);

/*
 * The bytes that blocks have covered. NULL: not kept; a realloc is under way, whose result none knows yet; or results
 * were lost, blocks nobody knows of may be there.
 */
const struct cover_map *heap_cover(const struct heap *h);

/* Bytes of memory that the books use now. */
u64 heap_memory(const struct heap *h);

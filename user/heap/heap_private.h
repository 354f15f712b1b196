/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The inside of a heap. For user/heap/heap*.c only. */
#pragma once

#include "user/heap/block_table.h"
#include "user/heap/cover_map.h"
#include "user/heap/fold.h"
#include "user/heap/heap_sample.h"
#include "user/heap/misuse.h"
#include "user/heap/region_table.h"
#include "user/heap/row_table.h"
#include "user/heap/slices.h"
#include "user/heap/tape.h"
#include "user/heap/thread_table.h"
#include "user/heap/timeline.h"

enum {
	EPOCH_UNSURE = 0, /* of blocks that stay unsure */
	EPOCH_MAX = 63,
	NS_PER_MS = 1000000,
};

/* The block that a realloc was called with. */
enum pending_kind {
	PENDING_UNKNOWN, /* not known to the heap */
	PENDING_BLOCK,
	PENDING_REGION,
	PENDING_GONE, /* freed: another call has returned its address since */
};

/* A block between the entry and the return of its realloc. */
struct pending {
	taddr_t old_addr;
	u32 tid;
	u8 kind; /* enum pending_kind */
	union {
		struct block block;
		struct region_piece piece;
	};
};

struct heap {
	const struct alloc_table *fns; /* borrowed */
	struct budget budget;
	struct heap_totals totals;
	struct timeline timeline; /* its maximum is at most peak_bytes of the totals */
	struct tape *tape;	  /* owned; NULL = not kept */
	struct slices *slices;	  /* owned; NULL = not kept */
	u64 lost;
	u64 peak_nr; /* number of the latest peak */
	u64 base_ms; /* times of blocks count from here */
	u64 last_order;
	u8 order_shift; /* user/heap/heap_order.c */
	u32 epoch;	/* grows by one with each heap_taint(); blocks of an older epoch are unsure */
	bool is_lossy;	/* heap_expect_gaps(): the return of a call may be missing */
	struct row_table rows;
	struct block_table blocks;
	struct block_table
		covered; /* blocks that hold a pool, one of whose blocks is in blocks at their address */
	struct block_table ignored; /* addresses of blocks that are no leaks; only the keys are used */
	struct fold_counts folded;
	struct region_table regions;
	struct cover_map cover;
	bool has_cover;
	struct pending *pending; /* owned; oldest first */
	u32 nr_pending, max_pending;
	u64 pending_filter; /* the pending_bit() of each pending block is set, perhaps other bits too */
	u64 calls[ALLOC_MAX_FNS];
	struct thread_table threads;
	u32 first_row, end_row;	      /* blocks of these rows are counted: heap_span_begin() */
	bool is_past;		      /* heap_span_end() */
	u64 outside_bytes;	      /* live bytes in blocks that are not counted */
	struct misuse_table *misuses; /* owned; NULL = releases are not checked */
	u64 unseen_frees;	      /* heap_set_unseen_frees() */
	bool is_complete;	      /* the process was seen from its start: an unknown block is no block */
	u64 blurred[ALLOC_MAX_FNS / 64];	    /* heap_check_blur() */
	bool (*is_own)(const void *ctx, u64 stack); /* heap_check_own(); NULL = not known */
	const void *own_ctx;			    /* borrowed */
	u64 sample_bytes, nr_samples; /* heap_set_sample(), 0 = all blocks are seen; blocks entered */
	u64 sample_last;	      /* the latest distance, if samples tell theirs; else 0 */
	bool has_check_gaps;	      /* heap_check_gaps(): unknown blocks may exist after all */
};

/* heap_pool.c */
/* A block of @fn is allocated at @addr, where @b is: if @b is a pool's memory, keep it aside, and return true. */
bool pool_cover(struct heap *h, taddr_t addr, const struct block *b, u16 fn);
/* The block at @addr that @fn releases, if another one of a pool lies over it; else NULL. */
struct block *pool_under(const struct heap *h, taddr_t addr, u16 fn);
/* The block @b at @addr is released: put back the block below, and return true; false if there is none. */
bool pool_uncover(struct heap *h, taddr_t addr, struct block *b);

/* heap_order.c */
/* The first event is entered. */
void heap_order_begin(struct heap *h, u64 now_ns);
/* The order of a block that is allocated at @time_ns. Orders of other blocks may change: h->order_shift. */
u64 heap_order_next(struct heap *h, u64 time_ns);
/* The time of its allocation, exact to the millisecond. */
u64 heap_order_time_ns(const struct heap *h, u64 order);

/* heap_ignore.c */
bool heap_is_ignored(const struct heap *h, taddr_t addr);
/* The event @ev is about to be entered: a block that it releases is not ignored any more. */
void ignored_end(struct heap *h, const struct heap_event *ev);

/* heap_check.c, for heaps with misuses: heap_check(). @ev is the release. */
/* Check the release of the block @b at @addr. Call it before the release is entered. */
void check_release(struct heap *h, taddr_t addr, const struct block *b, const struct heap_event *ev);
/* Note a call that is allowed, and a mistake nevertheless. */
void check_notice(struct heap *h, const struct heap_event *ev);
/* Remember the release of the block at @addr. */
void check_freed(struct heap *h, taddr_t addr, u32 row, const struct heap_event *ev);
/* Check a release of @addr, where no block is. */
void check_unknown(struct heap *h, taddr_t addr, const struct heap_event *ev);

/* True if blocks of this row are counted: all blocks, or those that were allocated within the span. */
static inline bool is_counted(const struct heap *h, u32 row)
{
	return row - h->first_row < h->end_row - h->first_row;
}

/* The end of the slot of time that the last event was in. */
static inline struct timeline_point now_in_time(const struct heap *h)
{
	return (struct timeline_point){ .time_ns = h->totals.last_time_ns,
					.live_bytes = h->totals.live_bytes,
					.live_blocks = h->totals.live_blocks };
}

static inline bool pending_is_live(const struct pending *p)
{
	return p->kind == PENDING_BLOCK || p->kind == PENDING_REGION;
}

static inline bool pending_is_counted(const struct heap *h, const struct pending *p)
{
	if (p->kind == PENDING_BLOCK)
		return is_counted(h, p->block.row);
	return p->kind == PENDING_REGION && is_counted(h, h->regions.regions[p->piece.region].row);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the books consist of: written by heap.c, read out by heap_read.c, and for nobody else. */
#pragma once

#include "user/block_table.h"
#include "user/cover_map.h"
#include "user/heap.h"
#include "user/misuse.h"
#include "user/region_table.h"
#include "user/row_table.h"

enum {
	EPOCH_UNSURE = 0, /* of blocks that are unsure whatever comes */
	EPOCH_MAX = 4095,
	NS_PER_MS = 1000000,
};

/* What the books know about the block that a realloc was called with. */
enum pending_kind {
	PENDING_UNKNOWN, /* nothing */
	PENDING_BLOCK,
	PENDING_REGION,
	PENDING_GONE, /* it was freed: its address came back from another call */
};

/* A block between the entry of its realloc and the return. */
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
	struct budget budget;
	struct heap_totals totals;
	u64 lost;
	u64 peak_nr;   /* grows with each new peak */
	u64 base_ms;   /* times in blocks count from here */
	u32 epoch;     /* grows with each taint; blocks of an older one are unsure */
	bool is_lossy; /* events have been lost: the end of a call may be missing */
	struct row_table rows;
	struct block_table blocks;
	struct region_table regions;
	struct cover_map cover;
	bool has_cover;
	struct pending *pending; /* owned; oldest first */
	u32 nr_pending, max_pending;
	u64 pending_filter; /* bit pending_bit() is set for each pending block, perhaps others too */
	u64 calls[ALLOC_MAX_FNS];
	u32 first_row, end_row;	      /* heap_span_begin(): of those callers blocks are counted */
	bool is_past;		      /* heap_span_end() */
	u64 outside_bytes;	      /* live in blocks that are not */
	struct misuse_table *misuses; /* owned; NULL = releases are not checked */
	bool is_complete;	      /* the process was seen from its start: unknown blocks are none */
	u64 blurred[ALLOC_MAX_FNS / 64];
	bool has_check_gaps; /* but for what got lost */
};

/* heap_check.c; all do nothing unless that was asked for. @ev is the release. */
/* The block at @addr, that row @row allocated, is about to be released. */
void check_release(struct heap *h, taddr_t addr, u32 row, const struct heap_event *ev);
/* It has been. */
void check_freed(struct heap *h, taddr_t addr, u32 row, const struct heap_event *ev);
/* @addr, where no block is, is about to be released. */
void check_unknown(struct heap *h, taddr_t addr, const struct heap_event *ev);

/* Blocks of this row are in the numbers: they were allocated within the span, if there is one. */
static inline bool is_counted(const struct heap *h, u32 row)
{
	return row - h->first_row < h->end_row - h->first_row;
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

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Counts of each caller in slices of time, at most SLICES_MAX and an open one: a report can show a part of the time.
 *
 * Nothing is done for an event. When the time of a slice is over, the counters of all rows are compared with those at
 * its beginning, and the differences are kept, packed into a few bytes each.
 */
#pragma once

#include "user/lib/types.h"

struct heap;
struct row;

enum { SLICES_MAX = 64, SLICES_BYTES_MAX = 8 << 20 };
enum { HAS_SLICES = !IS_AGENT, HAS_TAPE = !IS_AGENT /* the agent writes no pages, and no lists of events */ };

/* Counts of one caller in one slice. */
struct slice_counts {
	u64 allocs, frees, alloc_bytes;
	s64 live_bytes; /* change of its live bytes */
};

/* A slice that is over. */
struct slice {
	u64 number; /* it begins so many lengths after the first one */
	u8 *packed; /* owned; for each row that changed: its number and its counts */
	u32 len;
};

/* All slices have one length, a power of two in nanoseconds. One without events belongs to the one before. */
struct slices {
	struct budget *budget; /* borrowed */
	u32 shift;	       /* a slice is 1 << shift ns long */
	bool has_begun;
	u64 number;   /* of the slice that is being filled */
	u64 start_ns; /* of slice 0 */
	struct slice list[SLICES_MAX];
	u32 nr;
	u64 packed_bytes;	   /* of all slices in list */
	struct slice_counts *seen; /* owned; what each row had when the slice that is being filled began */
	u32 nr_seen, max_seen;
};

void slices_free(struct slices *s); /* NULL is fine */
int slices_copy(struct slices **out, const struct slices *s, struct budget *budget) __must_check;

/* Forget all slices. The rows begin anew, too. */
void slices_reset(struct slices *s);

/*
 * An event of @now_ns comes next; @rows are as the event before left them. The first event of all was at @start_ns.
 * Slices are at least 1 << @least_shift ns long. Lack of memory makes slices longer, and loses nothing.
 */
void slices_go_on(struct slices *s, u64 start_ns, u64 now_ns, u32 least_shift, const struct row *rows,
		  u32 nr_rows);

/*
 * Rows have new numbers: row @i is row @to[i] now, which is not above @i, and there are @nr_rows. Several may have
 * become one. 0, or -ENOMEM: the slices are of no use any more.
 */
int slices_fold(struct slices *s, const u32 *to, u32 nr_rows) __must_check;

/* Keep slices of @h, from its first event on. 0 or -ENOMEM. */
int heap_keep_slices(struct heap *h) __must_check;

/* When slice @i of @h began, CLOCK_MONOTONIC. The last one is not over. False behind it, or without slices. */
bool heap_slice(const struct heap *h, u32 i, u64 *begin_ns);

/* Visit each row (heap_row_get()) that did something in slice @i, in order. Stops at the first value that is not 0. */
int heap_slice_visit(const struct heap *h, u32 i,
		     int (*visit)(void *ctx, u32 row, const struct slice_counts *counts), void *ctx);

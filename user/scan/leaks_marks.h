/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Compare a scan with the last one of the process: which blocks are newly lost, which are found again. */
#pragma once

#include "user/scan/scan.h"

struct leaks;

/* Which lost blocks a report shows. */
enum leak_kinds {
	LEAKS_ALL,
	LEAKS_NEW,    /* lost now, but not at the last scan */
	LEAKS_LEAKED, /* lost at both scans */
};

/* A lost block. The time tells it from a later block at the same address. */
struct leak_mark {
	taddr_t addr;
	u64 time_ns;
};

/* The lost blocks of the last scan. Plain data; all zero: nothing was scanned yet. */
struct leak_marks {
	struct leak_mark *list; /* owned; by address */
	size_t nr;
	bool has_scan;
	bool is_last; /* the next scan is the last one: keep nothing of it */
};

void leak_marks_fini(struct leak_marks *marks);

/*
 * Compare the verdicts of @scan with @marks, into @l->fresh and @l->again, and replace @marks. Blocks that @kinds
 * leaves out move from the sums to @l->left_out. *@out_bits has a bit for each block in the order of scan_for_each(),
 * set if it was left out; owned by the caller, NULL if @kinds leaves out nothing. 0 or -ENOMEM: @marks is as before.
 */
int leaks_compare(struct leaks *l, const struct scan *scan, const struct heap *heap, struct leak_marks *marks,
		  enum leak_kinds kinds, u8 **out_bits) __must_check;

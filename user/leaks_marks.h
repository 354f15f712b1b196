/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which blocks were lost when a process was scanned last: what is new since, what was found again. */
#pragma once

#include "user/scan.h"

struct heap;
struct leaks;

/* Which lost blocks a report is about. */
enum leak_kinds {
	LEAKS_ALL,
	LEAKS_NEW,    /* not lost at the last scan */
	LEAKS_LEAKED, /* lost then and still lost */
};

/* A block, by more than its address: that may be another one's by now. */
struct leak_mark {
	taddr_t addr;
	u64 time_ns;
};

/* Plain data; zeros are an empty one: nothing was scanned yet. */
struct leak_marks {
	struct leak_mark *list; /* owned; by address */
	size_t nr;
	bool has_scan;
	bool is_last; /* the scan that comes is: of it nothing is kept */
};

void leak_marks_fini(struct leak_marks *marks);

/*
 * Compare the verdicts of @scan with @marks and put them in their place: @l->fresh, @l->again; blocks that @kinds
 * leaves out go from the sums to @l->left_out, and their bits in *@out_bits (owned by the caller, NULL = none), in the
 * order of scan_for_each(), are set. 0 or -ENOMEM: @marks is as before.
 */
int leaks_compare(struct leaks *l, const struct scan *scan, const struct heap *heap, struct leak_marks *marks,
		  enum leak_kinds kinds, u8 **out_bits) __must_check;

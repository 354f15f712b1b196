/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Leaked blocks of each caller as examples for reports, with the bytes that they held at the scan. */
#pragma once

#include "user/heap/heap.h"
#include "user/scan/scan.h"

struct leaks;
struct leaks_options;

/* A leaked block. */
struct leak_sample {
	struct heap_block block;
	enum scan_verdict verdict;
	u32 nr_bytes; /* of its contents from its start on; 0 = not asked for, or not readable */
	u8 *bytes;    /* owned */
};

/* Plain data; all zero: none. */
struct leak_samples {
	struct leak_sample *list; /* owned; those of one caller side by side, the largest first */
	size_t nr;
};

/*
 * After @l->blocks is there: choose at most @o->nr_samples blocks of each caller, the largest, and read their first
 * @o->content_bytes bytes from @snap (NULL: not here). 0 or -ENOMEM.
 */
int leak_samples_init(struct leak_samples *s, const struct leaks *l, const struct leaks_options *o,
		      struct snapshot *snap) __must_check;
void leak_samples_fini(struct leak_samples *s);

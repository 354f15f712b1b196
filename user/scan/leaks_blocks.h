/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The verdict on each block of the last scan, for lists of blocks: 8 bytes for each that is lost or unsure. */
#pragma once

#include "user/scan/scan.h"

/* Plain data; all zero: there was no scan. */
struct leak_blocks {
	u64 *list; /* owned; by address: the address << 3 | enum scan_verdict of blocks that are not reachable */
	size_t nr;
	u64 time_ns; /* of the last event before the scan */
};

/*
 * Take the verdicts of @scan on the blocks of @heap. @left_out: bits from leaks_compare(), or NULL; such blocks count
 * as not judged. 0 or -ENOMEM.
 */
int leak_blocks_init(struct leak_blocks *b, const struct scan *scan, const struct heap *heap,
		     const u8 *left_out) __must_check;
void leak_blocks_fini(struct leak_blocks *b);

/* The verdict on @block; SCAN_NONE: it is younger than the scan, or there was none. */
enum scan_verdict leak_blocks_find(const struct leak_blocks *b, const struct heap_block *block);

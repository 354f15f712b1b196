/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The first sieve of a scan: which words may be pointers to blocks. For user/scan/scan*.c only. */
#pragma once

#include "user/lib/types.h"

/* Words @value with (value & mask) - lo < length may point to a block. length is not 0. */
struct scan_filter {
	u64 mask, lo, length;
};

/* Write the indexes of those of the @nr words of 8 bytes at @p to @found, which has room for @nr. Returns how many. */
u32 scan_filter(const u8 *p, u32 nr, const struct scan_filter *f, u16 *found);

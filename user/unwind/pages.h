/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Large tables are filled at once: their pages, too, are made at once, and not one by one when they are written to. */
#pragma once

#include <sys/mman.h>

#include "user/lib/types.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

/* Make the pages of @bytes at @start, if that is possible. If not, the kernel makes each at its first use. */
static inline void pages_make(const void *start, size_t bytes)
{
	const u64 page = 4096; /* where pages are larger, the kernel refuses, or the end is rounded up */
	u64 from = (u64)(uintptr_t)start & ~(page - 1),
	    to = ((u64)(uintptr_t)start + bytes + page - 1) & ~(page - 1);

	if (bytes > 16 * page)
		madvise((void *)(uintptr_t)from, to - from, MADV_POPULATE_WRITE);
}

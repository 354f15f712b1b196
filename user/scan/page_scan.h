/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The ioctl PAGEMAP_SCAN of Linux 6.7, which older headers lack: lists runs of pages, and can note what is written. */
#pragma once

#include <sys/ioctl.h>

#include "user/lib/types.h"

struct proc_memory;

struct page_run {
	u64 start, end, categories;
};

struct page_scan {
	u64 size, flags, start, end, walk_end, vec, vec_len, max_pages;
	u64 category_inverted, category_mask, category_anyof_mask, return_mask;
};

#define PAGE_SCAN _IOWR('f', 16, struct page_scan)

/* Categories. */
enum {
	RUN_WATCHED = 1 << 0, /* the kernel notes whether it is written */
	RUN_WRITTEN = 1 << 1,
	RUN_FILE = 1 << 2,
	RUN_PRESENT = 1 << 3,
	RUN_SWAPPED = 1 << 4,
	RUN_ZERO = 1 << 5,
};

/* Bits of an entry of pagemap. */
#define ENTRY_PRESENT (1ULL << 63)
#define ENTRY_SWAPPED (1ULL << 62)
#define ENTRY_FILE    (1ULL << 61)
#define ENTRY_GUARD   (1ULL << 58)
#define ENTRY_WATCHED (1ULL << 57)

/*
 * Before Linux 4.2 all entries have the bits 57 and 58: from 55 on they say the size of a page, 12 to 14. An entry of
 * heaptap itself tells such kernels from those where a guard that is watched looks so.
 */
bool entry_is_guard(u64 entry);

enum { PAGE_SCAN_PROTECT = 1 << 0 }; /* flag: matching pages count as not written from now on */

/*
 * By @pagemap, a descriptor of /proc/PID/pagemap: the first page of [@at, @end) that is in memory or swapped out; @end:
 * there is none. @at: the kernel cannot say.
 */
taddr_t page_scan_next(int pagemap, taddr_t at, taddr_t end);

/*
 * Read [@addr, @addr + @len) of anonymous private memory by @memory. Pages that are neither in memory nor swapped out
 * are zeros, and stay out of it: a read would make them, and where the kernel has no page of zeros for all, the process
 * would grow. 0 or -EIO.
 */
int page_scan_read(int pagemap, const struct proc_memory *memory, taddr_t addr, u8 *buf,
		   size_t len) __must_check;

/* Are all pages of [@addr, @addr + @len) in memory? Where nobody knows (@pagemap -1): yes. */
bool page_scan_is_there(int pagemap, taddr_t addr, size_t len);

/* Is the page at @addr a guard, as the stacks of threads have since glibc 2.42? No program can read such a page. */
bool page_scan_is_guard(int pagemap, taddr_t addr);

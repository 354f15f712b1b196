/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Asks the kernel about single pages of a process. */
#include "user/scan/page_scan.h"

#include <unistd.h>

taddr_t page_scan_next(int pagemap, taddr_t at, taddr_t end)
{
	u64 page = (u64)sysconf(_SC_PAGESIZE);
	struct page_run run = { 0 };
	struct page_scan arg = {
		.size = sizeof(arg),
		.start = at / page * page,
		.end = end,
		.vec = (u64)(uintptr_t)&run,
		.vec_len = 1,
		.max_pages = 1,
		.category_anyof_mask = RUN_PRESENT | RUN_SWAPPED,
		.return_mask = RUN_PRESENT | RUN_SWAPPED,
	};
	int nr = ioctl(pagemap, PAGE_SCAN, &arg);

	if (nr <= 0)
		return nr < 0 ? at : end;
	return run.start > at ? run.start : at;
}

bool page_scan_is_guard(int pagemap, taddr_t addr)
{
	u64 entry, page = (u64)sysconf(_SC_PAGESIZE);

	return pread(pagemap, &entry, sizeof(entry), (off_t)(addr / page * sizeof(entry))) == sizeof(entry) &&
	       (entry & ENTRY_GUARD);
}

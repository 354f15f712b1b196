/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Asks the kernel about single pages of a process. */
#include "user/scan/page_scan.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "user/lib/cleanup.h"
#include "user/lib/proc_memory.h"

enum { NR_ENTRIES = 64 };

/* 0 = it cannot be read. */
static u64 read_entry(int pagemap, taddr_t addr)
{
	u64 entry, page = (u64)sysconf(_SC_PAGESIZE);
	ssize_t got = pread(pagemap, &entry, sizeof(entry), (off_t)(addr / page * sizeof(entry)));

	return got == sizeof(entry) ? entry : 0;
}

/* Does a page of ours, which is in memory, look like a guard? */
static bool has_page_shifts(void)
{
	auto_close int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);

	return read_entry(fd, (uintptr_t)&fd) & ENTRY_GUARD;
}

bool entry_is_guard(u64 entry)
{
	if (!(entry & ENTRY_GUARD) || (entry & ENTRY_PRESENT))
		return false;
	return !(entry & ENTRY_WATCHED) || ((entry & ENTRY_SWAPPED) && !has_page_shifts());
}

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

/* Guards may not be read, and are not empty. */
static bool is_empty(u64 entry)
{
	return !(entry & (ENTRY_PRESENT | ENTRY_SWAPPED)) && !entry_is_guard(entry);
}

/* How many of @len bytes at @addr have the same answer to is_empty(): *@empty. Where nobody knows they are not. */
static size_t same_part(int pagemap, taddr_t addr, size_t len, bool *empty)
{
	u64 page = (u64)sysconf(_SC_PAGESIZE), entries[NR_ENTRIES], nr = 1;
	u64 want = (addr + len - 1) / page - addr / page + 1;
	ssize_t got;

	want = want < NR_ENTRIES ? want : NR_ENTRIES;
	got = pread(pagemap, entries, want * sizeof(*entries), (off_t)(addr / page * sizeof(*entries)));
	*empty = got >= (ssize_t)sizeof(*entries) && is_empty(entries[0]);
	if (got < (ssize_t)sizeof(*entries))
		return len;
	while (nr < (u64)got / sizeof(*entries) && is_empty(entries[nr]) == *empty)
		nr++;
	nr = nr * page - addr % page;
	return nr < len ? nr : len;
}

int page_scan_read(int pagemap, const struct proc_memory *memory, taddr_t addr, u8 *buf, size_t len)
{
	size_t part;

	for (; len; addr += part, buf += part, len -= part) {
		bool empty;

		part = same_part(pagemap, addr, len, &empty);
		if (empty)
			memset(buf, 0, part);
		else if (proc_memory_read(memory, addr, buf, part) != (ssize_t)part)
			return -EIO;
	}
	return 0;
}

bool page_scan_is_there(int pagemap, taddr_t addr, size_t len)
{
	u64 page = (u64)sysconf(_SC_PAGESIZE);

	for (taddr_t at = addr / page * page; pagemap >= 0 && at < addr + len; at += page)
		if (!(read_entry(pagemap, at) & ENTRY_PRESENT))
			return false;
	return true;
}

bool page_scan_is_guard(int pagemap, taddr_t addr)
{
	return entry_is_guard(read_entry(pagemap, addr));
}

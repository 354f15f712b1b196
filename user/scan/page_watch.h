/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Let the kernel note which pages of a running process are written, by write protection that it takes off by itself
 * (UFFD_FEATURE_WP_ASYNC and PAGEMAP_SCAN, Linux 6.7). The first write to a page costs the process a fault, and nothing
 * waits for heaptap.
 *
 * For this one thread of the process makes a userfaultfd, heaptap takes it, and the thread closes it. The descriptor of
 * heaptap is then the only one: when it is closed, at the latest by the end of heaptap, the kernel takes everything
 * back.
 */
#pragma once

#include "user/lib/types.h"

struct page_run;

struct snapshot_holder;

struct page_watch {
	pid_t pid;
	int fd;	      /* owned; the userfaultfd, -1 = none */
	int pagemap;  /* owned; -1 = none */
	u64 pause_ns; /* how long the process was stopped for it */
};

/*
 * Prepare to watch @pid. Stops all of its threads for a moment, at most for @max_pause_ns. 0, or nothing has changed:
 * -ENOTSUP this kernel or CPU cannot do it; -EALREADY the process uses userfaultfd itself; -EBUSY no thread can carry
 * out the call now; -EPERM; -EMFILE the process has too many files open; -ESRCH; -ENOMEM; -ETIME. @holder: who traces
 * the process already, NULL = nobody.
 */
int page_watch_open(struct page_watch *w, pid_t pid, const struct snapshot_holder *holder,
		    u64 max_pause_ns) __must_check;

/* Watch [start, end), anonymous private memory of one mapping. 0 or -errno: then its pages count as written. */
int page_watch_add(const struct page_watch *w, taddr_t start, taddr_t end) __must_check;

enum page_find {
	FIND_WRITTEN, /* pages that were written since the last call, or never asked for; watch them */
	FIND_NEW,     /* all pages, and watch them from now on */
	FIND_STATE,   /* all pages, with RUN_WRITTEN and RUN_WATCHED in categories */
};

/*
 * Find populated pages from *@pos to @end, and advance *@pos to where the next call goes on. Returns the number of
 * runs, at most @max, or -errno.
 */
int page_watch_find(const struct page_watch *w, taddr_t *pos, taddr_t end, enum page_find how,
		    struct page_run *runs, u32 max) __must_check;

/* See page_scan_is_guard(). */
bool page_watch_is_guard(const struct page_watch *w, taddr_t addr);

/*
 * Watch [start, end) no more, step by step. The kernel takes the protection off each page, some 30 ms per GiB, and
 * locks the mappings of the process. page_watch_close() does that in one step.
 */
void page_watch_remove(const struct page_watch *w, taddr_t start, taddr_t end);

/* Take everything back. Again is fine. */
void page_watch_close(struct page_watch *w);

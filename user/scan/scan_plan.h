/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The needs of a scan: said before it starts where that is much, and compared with the memory that it may take. */
#pragma once

#include "user/lib/types.h"

struct scan_plan {
	u64 nr_blocks;
	u64 bytes;  /* of the process, in memory */
	u64 memory; /* bytes that heaptap takes for the scan */
	u64 read_ns; /* about how long its memory is read; the process stands for so long unless there is a copy */
	u64 time_ns; /* about how long all of it takes */
};

/* By what scans were measured to need. @nr_jobs: threads that read, at least 1. Never overflows: it saturates. */
struct scan_plan scan_plan_of(u64 nr_blocks, u64 bytes, u32 nr_jobs);

/* The threads that read: @nr_jobs, or if that is 0 one for each CPU that heaptap may use. */
u32 scan_plan_jobs(u32 nr_jobs);

/*
 * Plan a scan of @pid and say so if it is large. @is_known: it was said before. 0; -EDQUOT: it needs more than
 * @max_memory (0 = no limit), logged.
 */
int scan_plan_check(pid_t pid, u64 nr_blocks, u32 nr_jobs, u64 max_memory, bool is_known) __must_check;

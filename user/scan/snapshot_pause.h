/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How long a process will be stopped for a verdict: estimated before, by its memory, this machine and its load. */
#pragma once

#include <sys/types.h>

#include "user/lib/types.h"
#include "user/scan/snapshot_way.h"

struct snapshot_pause {
	u64 own_bytes;	  /* memory of the process alone, also swapped out */
	u64 shared_bytes; /* memory that it shares, which no copy has */
	u64 nr_threads;
	u32 nr_jobs;	  /* threads that would read it, at least 1 */
	bool walks_books; /* a census: one thread also reads what the allocator notes of each block */
	double slow; /* time that work of heaptap takes in a stop, in times of that on the machine of the figures */
	double busy; /* the same for work of the process, which has its own priority */
};

/* A process with @own_bytes, on a machine as that of the figures that has nothing else to do. */
struct snapshot_pause snapshot_pause_usual(u64 own_bytes, u32 nr_jobs, bool walks_books);

/*
 * Look at process @pid, and measure the machine for about a millisecond. @nr_jobs: 0 = one for each CPU. Nothing is
 * stopped. 0, -ESRCH or -errno.
 */
int snapshot_pause_look(struct snapshot_pause *out, pid_t pid, u32 nr_jobs, bool walks_books) __must_check;

/* Nanoseconds of the stop by @way. @rest_bytes: with precopy, what is left to copy in the stop. */
u64 snapshot_pause_ns(const struct snapshot_pause *p, enum snapshot_way way, u64 rest_bytes);

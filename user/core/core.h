/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A core file of a process that runs on afterwards. Life: core_stop(), the process is stopped from here on;
 * core_write(); core_resume(), the process runs again; core_free().
 */
#pragma once

#include "user/lib/types.h"

struct core;

struct core_options {
	u64 max_bytes;	 /* of memory; 0 = all */
	pid_t first_tid; /* the thread that gdb shows first; 0 = the main thread */
	const struct snapshot_holder
		*holder; /* the process that has stopped the threads, as in user/scan/snapshot.h */
};

/* Fields of a core that is written. */
struct core_sums {
	size_t nr_threads;
	size_t nr_unstopped; /* threads that could not be stopped, and are not in the file */
	u64 memory_bytes;    /* in the file; pages of zeros take no room in it */
	u64 left_out_bytes;  /* mapped, but beyond max_bytes */
	u64 unreadable_bytes;
	u64 pause_ns; /* set by core_resume() */
};

/*
 * Stop all threads of @pid, and read their registers. *@out is owned by the caller: core_free(), in the same thread.
 * 0; -EOPNOTSUPP on a CPU, or for a 32-bit process, whose registers have no form here; -ESRCH; -EPERM, also if another
 * process traces it; -ETIME: no thread stopped within 2 s; -ENOMEM. After an error the process runs.
 */
int core_stop(struct core **out, pid_t pid, const struct core_options *options) __must_check;

/*
 * Write the file to the empty regular file @fd. Any thread may do that. Blocks on disk I/O. 0 or -errno: then the file
 * is no core.
 */
int core_write(struct core *c, int fd) __must_check;

/* Resume the process, in the thread of core_stop(). A second call does nothing. */
void core_resume(struct core *c);

struct core_sums core_sums(const struct core *c);

/* Resume the process if it is still stopped, and free @c. NULL is fine. */
void core_free(struct core *c);

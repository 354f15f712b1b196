/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A copy of the memory of a process that is made while it runs, as a machine is moved to another one: read all, then
 * again what was written meanwhile, until little is left. The process is stopped only for that rest.
 *
 * Life: precopy_new(), precopy_run(), stop the process, precopy_finish(), precopy_free(). Only anonymous private memory
 * is copied; the rest is small, or other processes write to it too. The copy takes as much memory of heaptap.
 */
#pragma once

#include "user/scan/snapshot.h"

struct page_copy;

struct precopy_options {
	u64 max_bytes;		   /* of the copy */
	u64 usual_bytes;	   /* of the copy, for progress_bytes() */
	u64 max_pause_ns;	   /* of the short stop at the beginning */
	bool (*is_unwanted)(void); /* NULL = never; true: give up */
	const struct snapshot_holder
		*holder; /* borrowed until precopy_new() returns; NULL = nobody traces it */
};

/*
 * Have the kernel note what @pid writes from now on. Stops it for a moment. *@out is owned by the caller:
 * precopy_free(). 0, or nothing has changed: the errors of page_watch_open().
 */
int precopy_new(struct precopy **out, pid_t pid, const struct precopy_options *options) __must_check;

/* Copy, in rounds, while the process runs. 0; -E2BIG more than max_bytes; -ECANCELED unwanted; -ESRCH; -ENOMEM. */
int precopy_run(struct precopy *p) __must_check;

/*
 * The process is stopped, and @s has its mappings: copy what was written since. Moves the copy into @kept, which is
 * empty, and sets @is_done for each mapping whose memory is complete there. Pages that cannot be read count in
 * skipped_bytes of @s. 0; -ETIME past @deadline_ns; -E2BIG; -ESRCH; -ENOMEM: @kept is to be freed.
 */
int precopy_finish(struct precopy *p, struct snapshot *s, u64 deadline_ns, struct page_copy *kept,
		   bool *is_done) __must_check;

/* Bytes that the process wrote in the last round, and about what it will have written when it is stopped. */
u64 precopy_rest(const struct precopy *p);

/* How long the process was stopped by precopy_new(). */
u64 precopy_pause(const struct precopy *p);

/* The kernel notes nothing any more. NULL is fine. */
void precopy_free(struct precopy *p);

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Before a process is stopped: choose how to get its moment, say what that costs, and copy ahead what can be. */
#pragma once

#include "user/lib/types.h"
#include "user/scan/snapshot_way.h"

struct snapshot_plan_options {
	pid_t pid;
	enum snapshot_way way;
	u64 max_copy; /* bytes that the copy may take; 0 = what there is room for */
	u64 max_pause_ns;
	u32 nr_jobs;		   /* threads that would read the stopped process; 0 = one for each CPU */
	bool walks_books;	   /* snapshot_pause.walks_books */
	bool is_price_known;	   /* do not say again what was said */
	bool (*is_unwanted)(void); /* NULL = never */
	const struct snapshot_holder *holder; /* borrowed; snapshot_options.holder */
};

struct snapshot_plan {
	enum snapshot_way way;	 /* for snapshot_options; never SNAPSHOT_AUTO */
	struct precopy *precopy; /* owned, for snapshot_options; NULL = nothing is copied ahead */
};

/*
 * SNAPSHOT_AUTO: would a process with @bytes of memory of its own stand for so long while it is read that a copy is
 * better?
 */
bool snapshot_plan_wants_copy(u64 bytes, u32 nr_jobs, bool walks_books);

/*
 * Choose the way. Never fails: where no copy is possible, the way is SNAPSHOT_STOP, and a warning says why unless the
 * way was SNAPSHOT_AUTO. May stop the process for a moment, by the thread that is its tracer.
 * SNAPSHOT_AUTO prefers precopy, whose stop is the shortest, and takes fork where that is not possible.
 */
void snapshot_plan_open(struct snapshot_plan *out, const struct snapshot_plan_options *o);
/* Then: copy ahead, in any thread. Takes longer than reading the process. Does nothing for other ways. */
void snapshot_plan_copy(struct snapshot_plan *p, const struct snapshot_plan_options *o);
/* Both. */
void snapshot_plan_make(struct snapshot_plan *out, const struct snapshot_plan_options *o);
/*
 * Then: may the process be stopped by @way, that of the plan or SNAPSHOT_STOP in its place? 0; -ETIME: it would stand
 * for longer than max_pause_ns. A warning says for how long, and which option allows that.
 */
int snapshot_plan_check(const struct snapshot_plan *p, const struct snapshot_plan_options *o,
			enum snapshot_way way) __must_check;
/* Then, where the process is stopped and its copy failed with @err: may it stand while it is read? As above. */
int snapshot_plan_check_uncopied(const struct snapshot_plan *p, const struct snapshot_plan_options *o,
				 int err) __must_check;
/* Again is fine. */
void snapshot_plan_free(struct snapshot_plan *p);

/* How long the process was stopped for the plan. */
u64 snapshot_plan_pause(const struct snapshot_plan *p);

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

/* Nanoseconds of the stop by @way. @rest_bytes: with precopy, what is left to copy in the stop. */
u64 snapshot_pause_ns(const struct snapshot_pause *p, enum snapshot_way way, u64 rest_bytes);

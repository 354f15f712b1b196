/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The content of a page of metrics: heaptap itself, processes, their containers, their callers. */
#pragma once

#include "user/heap/heap.h"
#include "user/lib/proc.h"
#include "user/lib/types.h"
#include "user/scan/scan.h"
#include "user/source/source.h"

struct report;

enum { METRICS_CONTAINER = 80, METRICS_POD = 48, METRICS_WHERE = 320, METRICS_FUNCTION = 64 };

/* The most that an exposition has, whatever is asked for: each line costs its reader memory for weeks. */
enum { METRICS_MAX_PROCESSES = 1000, METRICS_MAX_CALLERS = 10000, METRICS_MAX_CONTAINERS = 1000 };

/* One process. Text comes from it, and is not escaped. */
struct metrics_process {
	pid_t pid;
	char comm[PROC_COMM_SIZE];
	char container[METRICS_CONTAINER], pod[METRICS_POD]; /* "" = none */

	bool is_watched; /* the next six are known */
	u64 resident, anonymous, swapped;
	bool grows;
	double growth, growth_error; /* bytes a second; the error is one standard error */
	bool has_limit;
	double limit_s; /* until it is met at this rate */

	bool is_traced; /* now */
	bool has_heap;	/* the next two are known */
	struct heap_totals totals;
	struct losses lost;
	bool is_window; /* other windows were before */
	double scale;	/* from the window to the whole time */
	bool has_verdict;
	struct scan_sums leaks;
	double verdict_s; /* when, seconds since 1970 */
	bool is_verdict_of_window;
	double verdict_scale;
	bool has_cost;
	double cost; /* of tracing, to the process: parts of a CPU */
};

/* One caller of a process. */
struct metrics_caller {
	u32 process;			 /* number in the table */
	char function[METRICS_FUNCTION]; /* of the allocator */
	char *where;			 /* owned, escaped: "make_node < add_node" */
	u64 allocs, alloc_bytes, live_blocks, live_bytes;
	s64 grown; /* bytes since the last report */
	bool has_verdict;
	struct scan_sums leaks;
};

/* Sums over the processes of one container. */
struct metrics_container {
	char container[METRICS_CONTAINER], pod[METRICS_POD];
	u64 nr, resident, anonymous, live_bytes, lost_bytes;
	double growth;
};

/* All zero: empty. */
struct metrics_table {
	double time_s;	/* of the snapshot, since 1970 */
	bool is_system; /* nr_watched to targets_cost are known */
	u64 nr_watched, nr_growing, nr_traced, nr_evicted, nr_unseen;
	double targets_cost;		   /* of tracing, to all processes: parts of a CPU */
	u64 nr_left_out;		   /* processes, callers and containers beyond the bounds */
	struct metrics_process *processes; /* owned */
	size_t nr_processes, max_processes;
	struct metrics_caller *callers; /* owned */
	size_t nr_callers, max_callers;
	struct metrics_container *containers; /* owned */
	size_t nr_containers, max_containers;
};

/* Process @pid, added if it is new; NULL: no memory, or as many as METRICS_MAX_PROCESSES, which is counted. */
struct metrics_process *metrics_process(struct metrics_table *t, pid_t pid, const char *comm);

/* Add a caller, or its numbers to those of one with the same names. 0 or -ENOMEM. */
int metrics_add_caller(struct metrics_table *t, const struct metrics_caller *c) __must_check;

/* Add @p to its container, which is named. 0 or -ENOMEM. */
int metrics_add_to_container(struct metrics_table *t, const struct metrics_process *p) __must_check;
void metrics_table_fini(struct metrics_table *t);

/*
 * Add the running processes of @r, and the @top callers of each that hold most (0 = all, within the bounds of the
 * table). Names are looked up, which may block on disk I/O. 0 or -ENOMEM.
 */
int metrics_take_report(struct metrics_table *t, const struct report *r, u32 top) __must_check;

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The head of the screen: sums of the report, and the lines that say them. */
#pragma once

#include "user/report/report.h"
#include "user/scan/scan_result.h"
#include "user/top/top_line.h"

struct meter;

/* Sums over the processes that are shown, from the last report. */
struct top_head {
	char names[256]; /* "redis-server (pid 26933)", "3 processes"; escaped */
	const char *backend;
	u64 duration_ns;
	size_t nr_processes, nr_running;
	pid_t pid; /* of the first process that runs; 0 = none */
	u64 live_bytes, live_blocks, peak_bytes, alloc_bytes, allocs, calls;
	bool is_sampled; /* these are estimates */
	u64 lost;
	u64 resident_bytes; /* of processes of this machine; 0 = not known */
	u64 calls_per_s;
	struct scan_sums leaks;
	u64 pause_ns;	   /* of the last scan, the longest */
	size_t nr_scanned; /* processes with a verdict */
	char note[256];	   /* the first note of a process, escaped; "" = none */
	u64 call_cost_ns;  /* by breakpoints, measured; 0 = not measured */
};

/* Take the sums of @r. With @is_tick rates are new; @meter has the times. */
void top_head_take(struct top_head *h, const struct report *r, const struct meter *meter, bool is_tick);

/* Times that the lines need beside the sums. */
struct top_head_look {
	const struct meter *meter;
	u64 verdict_age_ns; /* 0 = no verdict was asked for */
	bool is_frozen;
};

enum { TOP_HEAD_LINES = 5 };

/* Write up to @max lines, the most important ones. Each must be empty. Returns how many. */
u32 top_head_lines(const struct top_head *h, const struct top_head_look *look, struct top_line *lines,
		   u32 max);

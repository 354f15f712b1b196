/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Metrics of one session: of attach and connect. */
#pragma once

#include "user/metrics/metrics.h"
#include "user/metrics/push.h"

struct session;

enum { TRACE_METRICS_VERDICTS = 256 };

struct trace_metrics {
	struct metrics *metrics;	/* owned; NULL = none are wanted */
	struct push *push;		/* owned; NULL = likewise */
	u32 top;			/* callers of each process; 0 = all */
	bool wants_scan;		/* verdicts now and then, not only at the end */
	u64 scan_ns;			/* when the last one was found; 0 = never */
	u64 scan_cost_ns, scan_bytes;	/* how long that took; live bytes of then */
	struct trace_verdict *verdicts; /* owned; of processes, because a report forgets them */
	u32 nr_verdicts;
};

/* @address and @url: as in metrics_open() and push_open(), NULL = none. 0 or as these. */
int trace_metrics_init(struct trace_metrics *tm, const char *address, const char *url, u32 top,
		       bool wants_scan) __must_check;

/* For each round of the loop around @s. May find verdicts, which stops processes for a moment. */
void trace_metrics_round(struct trace_metrics *tm, struct session *s);
/* Tracing is over: push the last profile. */
void trace_metrics_end(struct trace_metrics *tm, struct session *s);
void trace_metrics_fini(struct trace_metrics *tm);

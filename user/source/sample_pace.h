/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The distance between samples that keeps the events of a process few: for --sample auto. */
#pragma once

#include "bpf/event.h"

/* With at least so many bytes between samples few records come. */
enum { SAMPLE_FEW_BYTES = 1 << 16 };

/* Binary logarithms of distances: those that there are, and the first one. */
enum { SAMPLE_LEAST_LOG = 12, SAMPLE_MOST_LOG = 26, SAMPLE_FIRST_LOG = 19 };

/* Records a second of all processes of a trace: without a limit of cost, and the fewest. */
enum { SAMPLE_SUM = 1600, SAMPLE_LEAST_SUM = SAMPLE_SUM >> 6 };

/* Of one process. */
struct sample_pace {
	bool is_on;
	u8 log;	      /* of the distance now */
	u32 crowd;    /* processes of the trace: many share the records, */
	u32 sum;      /* of which they may have so many a second together; 0 = SAMPLE_SUM */
	u64 begin_ns; /* CLOCK_MONOTONIC: of the second that is counted */
	u64 nr;	      /* records since */
	s64 nr_live;  /* sampled blocks */
};

/* The block of @ev begins or ends. */
void sample_pace_count(struct sample_pace *p, const struct heap_event *ev);

/*
 * @nr more records have come until @now_ns. The distance from now on, in bytes: a power of two, larger where there were
 * more than some 200 a second, or more than its share of those of all, or where many sampled blocks live, and smaller
 * where there were few.
 */
u64 sample_pace_next(struct sample_pace *p, u64 nr, u64 now_ns);

/* All processes together had @sum a second, which cost @cost of @limit. How many they may have from now on. */
u32 sample_pace_sum(u32 sum, u64 cost, u64 limit);

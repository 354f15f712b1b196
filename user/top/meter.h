/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Rates of a running session, from its sums once a second. */
#pragma once

#include "user/lib/types.h"
#include "user/session/session_live.h"

enum { METER_PAST = 10 }; /* seconds of growth that are shown */

/* The sums of one moment. */
struct meter_sample {
	u64 time_ns;	     /* CLOCK_MONOTONIC */
	u64 cpu_ns;	     /* that heaptap itself has used */
	u32 probes_permille; /* of a process, that breakpoints have taken so far */
	struct session_totals sums;
};

/* All zero: nothing is known. */
struct meter {
	struct meter_sample first, before, now;
	struct {
		u64 time_ns, live_bytes;
	} past[METER_PAST]; /* the last samples, in turn */
	u32 nr;		    /* samples so far */
};

/* The sums of @s at this moment. */
struct meter_sample meter_look(struct session *s);

/* Enter a sample; the first one begins. */
void meter_add(struct meter *m, const struct meter_sample *sample);

/* Since the first sample. */
u64 meter_elapsed_ns(const struct meter *m);

/* Between the last two samples; 0 with less than two. */
u64 meter_events_per_s(const struct meter *m);

/* The share of one CPU that heaptap used between the last two samples, in tenths of a percent. */
u32 meter_cpu_permille(const struct meter *m);

/* The change of live bytes in the last *@time_ns, which are METER_PAST seconds or all since the first sample. */
s64 meter_growth(const struct meter *m, u64 *time_ns);

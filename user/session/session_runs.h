/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Probes in the targets of a session: how often they run, and how long, in one second of ten, as measuring costs. */
#pragma once

#include "user/source/probe_runs.h"

struct session;

/* Probes, and the CPU time that all processes had meanwhile. */
struct session_runs {
	struct probe_runs probes;
	u64 cpu_ns;
};

/* Measured prices of calls, for the cost in later reports. */
struct session_prices {
	u64 call_ns, inline_call_ns; /* as in struct report_cost */
	u32 permille;
};

void session_set_prices(struct session *s, const struct session_prices *prices);

/* Inside of a session. */
struct run_windows {
	bool is_wanted, is_on;
	u64 turn_ns; /* when it began, or ended, last; 0 = never */
	struct session_runs sum;
	struct session_prices prices; /* all zero: not measured */
};

/* Measure them from now on, as session_poll() is called. session_measure() is not for others then. */
void session_measure_runs(struct session *s);
/* All 0: they could not be measured here. */
struct session_runs session_runs(const struct session *s);

/* All processes had @cpu_ns since the last look. Of a process that has ended since then nothing counts. */
void session_look_at_runs(struct session *s, u64 cpu_ns, u64 now_ns);

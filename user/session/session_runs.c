/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Measures in turns what probes run in the targets. */
#include "user/session/session_live.h"
#include "user/session/session_private.h"

void session_look_at_runs(struct session *s, u64 cpu_ns, u64 now_ns)
{
	struct run_windows *w = &s->windows;
	const u64 turn_ns = w->is_on ? 1000000000 : 9000000000;
	bool was_on = w->is_on;
	struct probe_runs runs;

	if (!w->is_wanted)
		return;
	if (!w->turn_ns || now_ns - w->turn_ns >= turn_ns) {
		w->is_on = !w->is_on;
		w->turn_ns = now_ns;
	}
	if (!was_on && !w->is_on)
		return;
	if (session_measure(s, w->is_on, &runs)) {
		w->is_wanted = false;
		return;
	}
	if (!was_on || !cpu_ns)
		return;
	w->sum.probes.time_ns += runs.time_ns;
	w->sum.probes.nr += runs.nr;
	w->sum.probes.steady_ns += runs.steady_ns;
	w->sum.probes.nr_steady += runs.nr_steady;
	w->sum.cpu_ns += cpu_ns;
}

void session_measure_runs(struct session *s)
{
	s->windows.is_wanted = true;
}

struct session_runs session_runs(const struct session *s)
{
	return s->windows.sum;
}

void session_set_prices(struct session *s, const struct session_prices *prices)
{
	s->windows.prices = *prices;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The cost of probes for the targets, from counters of two moments. */
#include "user/source/probe_runs.h"

#include "user/source/kernel_facts.h"

enum { OTHERS_RUN_NS = 150 }; /* of a program for a process that is no target */

void probe_runs_between(struct probe_runs *out, const struct probe_runs *then, const struct probe_runs *now,
			const struct way_to_probe *way)
{
	u64 nr, others_ns, inside_ns, longer_ns, steps_ns;

	*out = (struct probe_runs){ .time_ns = now->time_ns - then->time_ns,
				    .nr_entries = now->nr_entries - then->nr_entries,
				    .nr_stepped = now->nr_stepped - then->nr_stepped,
				    .nr_returns = now->nr_returns - then->nr_returns,
				    .nr_own = now->nr_own - then->nr_own,
				    .nr_own_steps = now->nr_own_steps - then->nr_own_steps,
				    .nr_calls = now->nr_calls - then->nr_calls,
				    .inside_ns = now->inside_ns - then->inside_ns,
				    .nr_inside = now->nr_inside - then->nr_inside,
				    .least_inside_ns = now->least_inside_ns };
	inside_ns = out->nr_inside ? out->inside_ns / out->nr_inside : 0;
	longer_ns = inside_ns > out->least_inside_ns ? inside_ns - out->least_inside_ns : 0;
	nr = out->nr_entries + out->nr_stepped + out->nr_returns;
	out->traps_ns = out->nr_entries * way->entry_ns + out->nr_stepped * way->stepped_ns +
			out->nr_returns * way->return_ns + nr * longer_ns;
	steps_ns =
		out->nr_own_steps * (way->stepped_ns > way->entry_ns ? way->stepped_ns - way->entry_ns : 0);
	if (out->nr_own >= nr) {
		out->traps_ns += steps_ns;
		return;
	}
	others_ns = (nr - out->nr_own) * OTHERS_RUN_NS;
	out->traps_ns = (u64)((double)out->traps_ns * (double)out->nr_own / (double)nr) + steps_ns;
	out->time_ns -= others_ns < out->time_ns ? others_ns : out->time_ns;
}

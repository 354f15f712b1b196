/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How often probes have run for calls of the targets, and how long. */
#pragma once

#include "user/lib/types.h"

struct way_to_probe;

struct probe_runs {
	u64 time_ns;  /* without the ways into the kernel and back, */
	u64 traps_ns; /* which took so long */
	u64 nr_entries, nr_stepped,
		nr_returns; /* probes: as in struct way_to_probe; also in other processes */
	u64 nr_own;	    /* of them, for calls of the targets; */
	u64 nr_own_steps;   /* of those, entries whose instruction takes a single step */
	u64 nr_calls;	    /* that these have made events of */
	/* From the program at the entry of a call to that at its return: sum, number, least. */
	u64 inside_ns, nr_inside, least_inside_ns;
};

/*
 * Runs from @then to @now, which have no traps_ns: times are those of the targets alone. @way is that of a trial, whose
 * loop stays in the caches. In a program a way takes longer, because code and data of the kernel have left them
 * meanwhile, and because other processes take turns. From the entry of a call to its return is one way out of the
 * kernel and one into it, as any probe has: what that takes longer than the least is added to each.
 */
void probe_runs_between(struct probe_runs *out, const struct probe_runs *then, const struct probe_runs *now,
			const struct way_to_probe *way);

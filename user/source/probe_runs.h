/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How often probes have run in the targets, and how long. */
#pragma once

#include "user/lib/types.h"

struct probe_runs {
	u64 time_ns;				/* without the ways into the kernel and back, */
	u64 traps_ns;				/* which took so long, as a trial has measured them */
	u64 nr_entries, nr_stepped, nr_returns; /* probes: as in struct way_to_probe */
	bool is_shared;				/* other processes have run them, too */
};

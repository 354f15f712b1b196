/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How often probes have run in the targets, and how long. */
#pragma once

#include "user/lib/types.h"

/* Each run comes after a trap, whose time is not in it. */
struct probe_runs {
	u64 time_ns, nr;
	u64 steady_ns, nr_steady; /* of these, those of the program that does the same work in each target */
};

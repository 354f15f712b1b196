/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tries probes on children of heaptap, from a process made for it, to see what this kernel really does with them. */
#pragma once

#include "user/source/caps.h"
#include "user/source/caps_bpf.h"

/*
 * With CAPS_QUICK, the result may be that of an earlier run since the boot (user/source/kernel_facts.h). Else:
 * Place probes in two children by @link, let them call, count the calls. Blocks until that is known, 10
 * to 30 ms, at most 20 s. The trial process is still taking its probes out then: trial_settle().
 * Returns 0 and *@result, or -errno when the trial itself could not be made.
 */
int trial_run(struct trial_result *result, enum caps_bpf_link link, struct caps *caps,
	      enum caps_effort effort) __must_check;

/*
 * Collect the trial processes that have ended, which plain wait(2) calls do not see: until then they are zombies. Does
 * not block.
 */
void trial_reap(void);

/* Wait until nothing is left of the trials; blocks for some 100 ms at most after the last. */
void trial_settle(void);

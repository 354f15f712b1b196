/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Stand-in for BPF in the agent: its source is never usable, and says why. */
#include <errno.h>

#include "user/source/caps_trial.h"
#include "user/source/inline_limits.h"
#include "user/source/source.h"

static int probe(struct caps *caps)
{
	*caps = (struct caps){ .reason = "the agent has no BPF" };
	return -EOPNOTSUPP;
}

/* No other function of an unusable source is called. */
const struct source_ops source_bpf = { .name = "bpf", .probe = probe };
const struct source_ops source_inline = { .name = "inline", .probe = probe };
const struct source_ops source_inline_traced = { .probe = probe };

const char *inline_limits_here(const struct caps *caps, bool is_launch)
{
	(void)is_launch;
	return caps->reason;
}

/* For doctor: the first trial of caps_probe() fails with this error, and the others are skipped. */
int caps_bpf_counters(u32 nr)
{
	(void)nr;
	return -ENOPKG;
}

int caps_bpf_ring(void)
{
	return -ENOPKG;
}

int caps_bpf_program(int counters, u32 slot, enum caps_bpf_link link, bool has_cookie)
{
	(void)counters;
	(void)slot;
	(void)link;
	(void)has_cookie;
	return -ENOPKG;
}

int trial_run(struct trial_result *result, enum caps_bpf_link link, struct caps *caps,
	      enum caps_effort effort)
{
	(void)result;
	(void)link;
	(void)caps;
	(void)effort;
	return -ENOPKG;
}

void trial_reap(void)
{
}

void trial_settle(void)
{
}

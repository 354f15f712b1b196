/* SPDX-License-Identifier: GPL-2.0-or-later */
/* In the agent: no BPF source, so that another one is chosen, with the reason. */
#include <errno.h>

#include "user/caps_trial.h"
#include "user/lib/log.h"
#include "user/options.h"
#include "user/source.h"

static int probe(struct caps *caps)
{
	*caps = (struct caps){ .reason = "the agent has no BPF" };
	return -EOPNOTSUPP;
}

/* Nothing else is called of a source that is not usable. */
const struct source_ops source_bpf = { .name = "bpf", .probe = probe };

/* caps_probe(), for doctor: the first of these trials fails, with this reason, and the others are not made. */
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

int trial_run(struct trial_result *result, enum caps_bpf_link link, bool has_cookie)
{
	(void)result;
	(void)link;
	(void)has_cookie;
	return -ENOPKG;
}

void trial_settle(void)
{
}

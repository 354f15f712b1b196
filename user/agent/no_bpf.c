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

/* Nothing has been tried. */
void trial_settle(void)
{
}

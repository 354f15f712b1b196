/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Turn the losses of a process into STREAM_LOSSES, and back. */
#pragma once

#include "user/source/source.h"
#include "user/stream/stream_record.h"

static inline struct stream_losses stream_losses_put(pid_t pid, const struct losses *l, u8 flags)
{
	return (struct stream_losses){ .pid = (u32)pid,
				       .flags = flags,
				       .allocs = l->allocs,
				       .frees = l->frees,
				       .stacks = l->stacks,
				       .other = l->other,
				       .abandoned = l->abandoned,
				       .unfollowed = l->unfollowed,
				       .sharers = l->sharers,
				       .overwritten = l->overwritten,
				       .tracers = l->tracers,
				       .by_probes = l->by_probes,
				       .late = l->late,
				       .left_out = l->left_out };
}

static inline struct losses stream_losses_take(const struct stream_losses *rec)
{
	return (struct losses){ .allocs = rec->allocs,
				.frees = rec->frees,
				.stacks = rec->stacks,
				.other = rec->other,
				.abandoned = rec->abandoned,
				.unfollowed = rec->unfollowed,
				.sharers = rec->sharers,
				.overwritten = rec->overwritten,
				.tracers = rec->tracers,
				.by_probes = rec->by_probes,
				.late = rec->late,
				.left_out = rec->left_out };
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Settings that can be changed while events flow: pause, depth of stacks, filter. */
#pragma once

#include "bpf/event.h"

struct tuning {
	bool is_paused; /* calls are not seen */
	bool is_thin;	/* serve keeps releases of blocks of which it has sent no allocation */
	u32 depth;	/* frames per stack, 0 = none */
	/* Bytes. Allocations outside are left out; releases are not, as their size is not known. max 0 = no limit. */
	u64 min_size, max_size;
};

/* Is there a filter? */
static inline bool tuning_has_filter(const struct tuning *t)
{
	return t->min_size || t->max_size;
}

/* For tuning_takes(): does @ev pass the filter that there is? */
bool tuning_passes(const struct tuning *t, const struct heap_event *ev);

/* Does @ev, a heap event, pass the filter? Results of realloc always do, because they end the life of a block. */
static inline bool tuning_takes(const struct tuning *t, const struct heap_event *ev)
{
	return !tuning_has_filter(t) || tuning_passes(t, ev);
}

/* Are the values possible? */
bool tuning_is_sane(const struct tuning *t);

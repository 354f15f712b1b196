/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What can be changed while events flow: whether, how deep, which. */
#pragma once

#include "bpf/event.h"

struct tuning {
	bool is_paused; /* calls are not seen */
	u32 depth;	/* frames per stack, 0 = none */
	/* Bytes; allocations outside are left out, releases are not: their size is not known. max 0 = no limit. */
	u64 min_size, max_size;
};

/* Is there a filter? */
bool tuning_has_filter(const struct tuning *t);

/* Does @ev, a heap event, pass it? Results of realloc always do: they say what became of the block before. */
bool tuning_takes(const struct tuning *t, const struct heap_event *ev);

/* Is it one that can be? */
bool tuning_is_sane(const struct tuning *t);

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The filter of events, the same on both ends of a connection. */
#include "user/source/tuning.h"

bool tuning_passes(const struct tuning *t, const struct heap_event *ev)
{
	/* A failed call makes no block, but counts. A second try after a new_handler takes the first result back. */
	if (ev->h.kind != EVENT_ALLOC || !ev->addr || ev->h.flags & EVENT_RETRY)
		return true;
	return ev->size >= t->min_size && (!t->max_size || ev->size <= t->max_size);
}

bool tuning_is_sane(const struct tuning *t)
{
	return t->depth <= STACK_MAX_FRAMES && (!t->max_size || t->max_size >= t->min_size);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Inside of the zoom: who gets a place, and who leaves one. All that wait get a turn, whoever waits longest first. */
#pragma once

#include "user/system/zoom.h"

/* The next thing to do. */
struct zoom_step {
	const struct watched *trace; /* NULL = nothing */
	u32 leave;	 /* number in the list, whose place it gets; as many as there are: there is room */
	const char *why; /* to leave; static */
};

/*
 * A report that is asked for comes first, then a process that was never traced, then the others. The place of a process
 * that has its answer is for one that has none. Who is spared is said and refused in @w. 0 or -ENOMEM.
 */
int zoom_places_next(struct zooms *z, struct watch *w, struct zoom_step *out) __must_check;

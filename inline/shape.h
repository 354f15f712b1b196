/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The functions that nearly all calls go to, as most C and C++ libraries have them. Their calls have the same steps as
 * any call (call/life.h), but the compiler knows so much of them that it leaves half of the instructions out.
 */
#pragma once

#include "bpf/event.h"
#include "call/probe.h"

enum piece_shape {
	SHAPE_OTHER,
	SHAPE_MALLOC,
	SHAPE_NEW,
	SHAPE_FREE,
	SHAPE_DELETE,
	SHAPE_SIZED_DELETE,
	NR_SHAPES
};

/* All but the name of the function (fn), and its code. */
static const struct call_probe piece_shapes[NR_SHAPES] = {
	[SHAPE_MALLOC] = { .kind = ALLOC_MALLOC, .flags = PROBE_RETURNS | PROBE_AT_RETURN, .size_arg = 1 },
	[SHAPE_NEW] = { .kind = ALLOC_MALLOC, .flags = PROBE_DELEGATES | PROBE_THROWS, .size_arg = 1 },
	[SHAPE_FREE] = { .kind = ALLOC_FREE, .old_arg = 1 },
	[SHAPE_DELETE] = { .kind = ALLOC_FREE, .flags = PROBE_DELEGATES, .old_arg = 1 },
	[SHAPE_SIZED_DELETE] = { .kind = ALLOC_FREE, .flags = PROBE_DELEGATES, .old_arg = 1, .size_arg = 2 },
};

static inline enum piece_shape piece_shape_of(const struct call_probe *p)
{
	for (u32 i = SHAPE_OTHER + 1; i < NR_SHAPES; i++) {
		const struct call_probe *s = &piece_shapes[i];

		if (p->kind == s->kind && p->flags == s->flags && p->size_arg == s->size_arg &&
		    p->count_arg == s->count_arg && p->old_arg == s->old_arg && p->out_arg == s->out_arg &&
		    p->align_arg == s->align_arg)
			return (enum piece_shape)i;
	}
	return SHAPE_OTHER;
}

/* May a call of @p call another function, whose bytes would count twice? */
static inline bool sample_has_inner(const struct call_probe *p)
{
	return p->count_arg || p->old_arg || p->out_arg || p->align_arg;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which way to see the calls of a process is tried first, by how many there are. */
#pragma once

#include "user/lib/types.h"

struct call_rate;
struct inline_source;
struct target;

/*
 * Begin with @t, in which nothing is yet: BPF sees its calls until put_code(), unless it has so many that breakpoints
 * would take more of its CPU time than they may. Blocks for some 100 ms. 0 or -errno.
 */
int inline_count_begin(struct inline_source *s, struct target *t) __must_check;

/* @t of @rate has code: say why. */
void inline_count_tell(const struct inline_source *s, const struct target *t, const struct call_rate *rate);

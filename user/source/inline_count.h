/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which way to see the calls of a process is tried first, by how many there are. */
#pragma once

#include "user/source/inline_source.h"

/*
 * Before anything is put into @t: would breakpoints take more of its CPU time than they may? False: not, or it is not
 * known, or nothing else is possible. Blocks for some 100 ms.
 */
bool inline_count_is_dear(struct inline_source *s, struct target *t, struct call_rate *rate);

/* @t of @rate has code: say why. */
void inline_count_tell(const struct target *t, const struct call_rate *rate);

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The tree of callers in a snapshot of massif: the allocator's callers first, then theirs. */
#pragma once

#include <stdio.h>

#include "user/report/measure.h"

/*
 * Write the tree of the callers of @p by @m, whose root is @total. Places with less than 1 % of @total share a line.
 * 0 or -ENOMEM.
 */
int massif_tree(FILE *out, const struct report *r, const struct report_process *p,
		const struct report_measure *m, u64 total) __must_check;

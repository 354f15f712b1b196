/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From the report on a session to rows of metrics. */
#pragma once

#include "user/lib/types.h"

struct metrics_table;
struct report;

/*
 * Add the running processes of @r, and the @top callers of each that hold most (0 = all, within the bounds of the
 * table). Names are looked up, which may block on disk I/O. 0 or -ENOMEM.
 */
int metrics_take_report(struct metrics_table *t, const struct report *r, u32 top) __must_check;

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Inside of tracing everything: its price is kept below --max-cost. */
#pragma once

#include "user/system/everything.h"

/*
 * After a look: what each process pays, and end the pauses that are over. Then, at most once in three seconds, the next
 * step for a price above the limit, of the dearest process or of all: short stacks; a pause of the dearest process; and
 * if its traps alone cost too much, no more probes in its allocator's file. Says each step in one line.
 */
void everything_price(struct everything *e, u64 now_ns);

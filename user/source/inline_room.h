/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The memory of the piece in a target grows with its threads, and with its unwind tables. */
#pragma once

#include "user/lib/types.h"

struct inline_target;

/* Will threads of @t soon have no more places? For the thread that wakes the reader. */
bool inline_room_wants(const struct inline_target *t);

/* After each poll of @t: map more places if it will. The target is stopped for that. What fails is logged once. */
void inline_room_look(struct inline_target *t);

/*
 * Have at least @nr shards of tables mapped in @target, a struct inline_target, which may be stopped for that. Returns
 * how many are mapped, which may be less, or -EINPROGRESS, -ESRCH as inject_grow().
 */
int inline_room_shards(void *target, u32 nr);

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Inside of a session: the end of counting that --stop-after names. */
#pragma once

#include "user/source/source.h"

struct process;
struct session;

/*
 * Counting is over (session_is_enough()). Is the heap event @ev of @p to be entered nevertheless, because it ends the
 * life of a block that was counted? In place of a realloc of such a block *@release is to be entered if its kind is
 * set.
 */
bool session_enough_takes(struct session *s, struct process *p, const struct heap_event *ev,
			  struct heap_event *release);

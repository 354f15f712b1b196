/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Processes in which nothing could be watched; for user/session/session*.c only. */
#pragma once

#include "user/lib/types.h"

struct process;
struct session;

/*
 * No allocator was found in @p, and no call was seen: its empty heap says nothing
 * about the program. A list of events need not name allocators, so a call counts too.
 */
bool process_is_unwatched(const struct process *p);

/* Explain in @p->unwatched why nothing in @p could be watched. Returns what would help, NULL if nothing is known. */
const char *session_explain_unwatched(const struct session *s, struct process *p);

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The limit of memory of a session, for user/session/session*.c only. */
#pragma once

#include "user/lib/types.h"

struct session;

/* The limit, and how near it is; a part of struct session. */
struct memory_bound {
	u64 max;	   /* bytes, for all of heaptap: --max-memory */
	u64 fold_at_bytes; /* callers are folded again when the books take so much */
	u64 room;	   /* bytes that may be taken while is_short */
	u64 next_look_ns;  /* at what the machine and the cgroup have left */
	bool is_short;	   /* they have little left */
	bool is_short_told, is_fold_told;
};

/* Begin with @max bytes, 0 = session_default_memory(). */
void session_begin_bound(struct session *s, u64 max);
/* There is no room for a stack: make some. False: there is none to be made. */
bool session_make_room(struct session *s);
/* The bytes that the books leave of the limit. */
u64 session_memory_left(const struct session *s);

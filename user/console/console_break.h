/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A process is stopped at a call: the commands `break` and `core`. */
#pragma once

#include "user/heap/heap.h"
#include "user/session/session_live.h"
#include "user/target/allocator.h"

struct break_point {
	struct session_listener listener; /* first: an event comes by its address */
	struct console *console;
	const char *command; /* whose messages these are */
	u32 caller;	     /* as top shows it; 0 = any that calls a function of wants */
	struct heap_row row; /* of the caller */
	bool wants[ALLOC_MAX_FNS];
	struct heap_event call; /* the one that was waited for; time 0 = none yet */
	bool is_wished;		/* the source was asked to stop the process in its call */
	bool is_in_call;	/* and it did */
	u64 since_ns;		/* when the command began */
	u64 delay_ns;		/* else, from the event to the stop */
	int err;		/* of the stop */
};

/*
 * Wait until the process that commands are about makes the call that @b wants: console, command, and caller or wants
 * are set. 0: it is stopped until console_break_end(); -EINTR: Ctrl-C; or another -errno, logged.
 */
int console_break_at(struct break_point *b);

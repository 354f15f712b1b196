/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Watches for things that disturb breakpoints: uprobes of others, and a process that blocks SIGTRAP. */
#pragma once

#include "user/lib/types.h"

struct trap_watch {
	pid_t pid;
	bool was_running; /* before the trace, with this memory */
	bool had_uprobes; /* of others, before us */
	bool is_overlaid; /* uprobes came while we trace: they may have taken calls from our breakpoints */
	bool had_handler; /* of SIGTRAP, when last looked */
	u32 nr_missed;	  /* looks in a row that found it gone */
	bool is_told;	  /* that the handler is in danger, or gone */
};

/*
 * Before the first breakpoint of @pid. @was_running: its memory may have had uprobes. Warns if it has a handler of
 * SIGTRAP and a thread that blocks the signal: the kernel takes the handler away when that thread runs into a
 * breakpoint.
 */
void trap_watch_begin(struct trap_watch *w, pid_t pid, bool was_running);

/*
 * To be called now and then. @function_of_others: a probed function where another program has a uprobe, or NULL. Warns
 * once of each trouble.
 */
void trap_watch_check(struct trap_watch *w, const char *function_of_others);

/* The process has executed another program: uprobes of its former memory have gone. */
void trap_watch_new_image(struct trap_watch *w);

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The remote source: events that a heaptap serve on another machine sends. */
#pragma once

#include "user/remote/remote_link.h"
#include "user/source/source.h"
#include "user/source/tuning.h"

struct source_remote_options {
	struct remote_link_options link;
	struct tuning tuning; /* at the start */
	u32 max_followed;     /* children that are traced too; 0 = none, unless the server follows them */
	bool want_mmap, no_cpp, wants_exit_scan;
};

extern const struct source_ops source_remote;

/*
 * Connect. Records come by source_ops.poll(), which returns -ENODATA at the end: after the target's end, or when the
 * connection is lost for good (see source_remote_why()). The caller owns *@out. 0 or -errno, logged.
 */
int source_remote_open(struct source **out, const struct source_remote_options *o,
		       struct module_table *modules, struct alloc_table *fns) __must_check;

/* Why the trace ended, for the user; "" = as wanted. */
const char *source_remote_why(const struct source *s);

/* Has each event that the server saw come, or been counted as lost? */
bool source_remote_is_complete(const struct source *s);

/* Does the server trace, and has it named a process? */
bool source_remote_is_started(const struct source *s);

/* Ask the server to remove the probes and to send the last records. Then poll() until -ENODATA. */
void source_remote_stop(struct source *s);

/* Ask the server to kill the target. 0 or -errno. */
int source_remote_kill(struct source *s);

/* The PID of a process that is at its end and waits for source_remote_let_exit(); 0 = none. */
pid_t source_remote_exiting(const struct source *s);

/* Let that process exit. It can be scanned before. */
void source_remote_let_exit(struct source *s);

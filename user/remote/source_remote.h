/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The remote source: events that a heaptap serve on another machine sends. */
#pragma once

#include "user/remote/remote_link.h"
#include "user/remote/wire.h"
#include "user/source/source.h"
#include "user/source/tuning.h"

struct source_remote_options {
	struct remote_link_options link;
	struct tuning tuning; /* at the start */
	u32 max_followed;     /* children that are traced too; 0 = none, unless the server follows them */
	bool want_mmap, no_cpp, wants_exit_scan;
	const char *needs_all; /* why sampled blocks are not enough, for the user; NULL = they are */
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

/*
 * A copy of the socket of a connection that is new since the last call, for the caller, and in @bytes the frame that
 * asks the server to remove the probes. -1: there is none.
 */
int source_remote_farewell(struct source *s, u8 bytes[WIRE_HEADER_LEN]);

/* Ask whether the server is there, without waiting. */
void source_remote_call(struct source *s);

/*
 * Somebody has waited for the end since @since_ms: give a verdict up where the server takes blocks so slowly that the
 * end would come much later than SOURCE_REMOTE_HURRY_MS. Was one given up?
 */
enum { SOURCE_REMOTE_HURRY_MS = 1700 };
void source_remote_hurry(struct source *s, u64 since_ms);
bool source_remote_is_late(const struct source *s);

/* How far the latest event that came is from now, or from @before_ns if that is not 0, by the clock here. */
u64 source_remote_lag_ns(struct source *s, u64 before_ns);

/* Ask the server to see no more calls. False: it cannot be asked. Has the stream come to that pause? */
bool source_remote_pause(struct source *s);
bool source_remote_has_paused(const struct source *s);

enum { SOURCE_REMOTE_SLOW = 64 }; /* bytes: a link with less in a millisecond is slow */

/* Has it not answered yet? Then *@ms is the time since the call or since its last frame, whichever is less. */
bool source_remote_is_silent(const struct source *s, u64 *ms);

/* Bytes that have come from the server. */
u64 source_remote_bytes(const struct source *s);

/*
 * Leave out what is on its way: connect again, so that the server counts it as lost. False: it cannot be connected to,
 * or it was asked to stop already. Events come again after source_remote_has_asked().
 */
bool source_remote_cut(struct source *s);
bool source_remote_has_asked(const struct source *s);

/* Because of @why ask the server to remove the probes, and wait for nothing. poll() returns -ENODATA then. */
void source_remote_leave(struct source *s, const char *why);

/* The PID of a process that is at its end, or at execve(), and waits for source_remote_let_exit(); 0 = none. */
pid_t source_remote_exiting(const struct source *s, bool *executes);

/* Let that process, if there is one, go on. It can be scanned before. */
void source_remote_let_exit(struct source *s);

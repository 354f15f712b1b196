/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Stops processes for verdicts that the calling thread traces by ptrace already, as run does. */
#pragma once

#include "user/lib/types.h"

struct thread_request;

struct session_stopper {
	void *ctx;
	int (*stop)(void *ctx, pid_t pid, u64 max_ns); /* all threads are in ptrace stops when it returns 0 */
	void (*release)(void *ctx, pid_t pid);
	/* While they are: snapshot_holder.call. NULL: it cannot. */
	int (*call)(void *ctx, pid_t pid, struct thread_request *request);
	/* Does it trace @pid? The session stops others itself. NULL: it traces all. */
	bool (*watches)(void *ctx, pid_t pid);
	/* Called again and again while a verdict takes long: resume threads that need nothing else. NULL: no need. */
	void (*attend)(void *ctx);
};

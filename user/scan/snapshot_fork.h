/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A copy of a stopped process, made by a fork that one of its threads carries out for heaptap. The copy never runs. It
 * holds the memory of the moment while the process itself goes on.
 *
 * The copy shares descriptors with the process, so that a file or a connection that the process closes is closed. It
 * sends no SIGCHLD, and a plain wait() of the process does not see it. The kernel kills it if heaptap dies, and before
 * any other process if memory runs out. All functions belong into the thread that holds the threads of the process, or
 * that talks to their holder. Without a holder it must be the process of outliving_run(): if it ended while a thread of
 * the target carries out a call, that thread would run on with foreign registers.
 */
#pragma once

#include "user/scan/outliving.h"
#include "user/scan/snapshot_threads.h"
#include "user/scan/thread_call.h"

struct process_copy {
	const struct outliving *outliving;    /* borrowed; whose process the caller is */
	const struct snapshot_holder *holder; /* borrowed; NULL: the caller holds the threads */
	pid_t pid;			      /* 0 = none */
	pid_t ns_pid;			      /* as the process knows it */
	pid_t parent;			      /* the process */
	struct thread_request places;	      /* of thread_call_places() */
};

/*
 * Make the copy. All threads are stopped; @s has their mappings. 0, or nothing was made: -EBUSY no thread can carry out
 * the call now; -ENOTSUP on this CPU; -EPERM seccomp; -EAGAIN or -ENOMEM limits of the process; -ESRCH.
 */
int process_copy_make(struct process_copy *c, const struct stopped_threads *held,
		      const struct snapshot *s) __must_check;

/*
 * Kill the copy, and let the process wait for it: one thread of it stops for that moment. If none can, the process
 * keeps a zombie until it ends. Does nothing without a copy.
 */
void process_copy_end(struct process_copy *c);

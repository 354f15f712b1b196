/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Let a thread of a stopped process carry out system calls for heaptap. */
#pragma once

#include "arch/stop_all.h"
#include "user/scan/outliving.h"
#include "user/scan/snapshot_holder.h"
#include "user/scan/thread_call.h"

/* Lets a thread of the target make calls: this process does, which holds the threads, or a holder. */
struct held_caller {
	const struct stopped_threads *held;   /* borrowed; not used with a holder */
	const struct snapshot_holder *holder; /* borrowed; NULL = this process */
	/* Borrowed. Without a holder the caller should be its process: if that ended meanwhile, the thread would run
	 * on with foreign registers. */
	const struct outliving *outliving;
	struct thread_request places; /* of thread_call_places() */
	struct thread_call *call;     /* of held_call(), while it works */
};

/*
 * Call @work once, with a thread that can carry out calls. Returns what @work does (-EAGAIN for -EBUSY), or without a
 * call of it: -EBUSY no thread can do it now; -ENOTSUP on this CPU; -EPERM seccomp; -ENOMEM; -ESRCH.
 */
int held_call(struct held_caller *by, int (*work)(struct held_caller *by, void *ctx), void *ctx) __must_check;

/* For @work: carry out system call r->number. 0 and r->result, or as struct snapshot_holder has it. */
int held_make(struct held_caller *by, struct thread_request *r) __must_check;

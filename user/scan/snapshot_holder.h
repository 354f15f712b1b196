/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Whoever traces a process by ptrace already, so that a snapshot cannot: it does for the snapshot what only it can. */
#pragma once

#include "user/lib/types.h"

struct arch_regs;
struct thread_request;

struct snapshot_holder {
	void *ctx;
	/* Registers of a stopped thread. 0 or -errno. NULL: the calling thread is the tracer, and reads them itself. */
	int (*read_regs)(void *ctx, pid_t tid, struct arch_regs *regs);
	/* Stop all threads within @max_ns; -EBUSY: they are stopped already. And: resume them. */
	int (*stop)(void *ctx, u64 max_ns);
	void (*release)(void *ctx);
	/*
	 * While all threads are stopped: let one of them carry out a system call. NULL: that is not possible. 0, or
	 * nothing was called: -EBUSY no thread can do it now; -ENOTSUP; -EPERM seccomp; -ESRCH.
	 */
	int (*call)(void *ctx, struct thread_request *request);
};

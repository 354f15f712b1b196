/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Stop all threads of a process by ptrace, read their registers, resume them. All calls must come from one thread,
 * because to ptrace the tracer is a thread.
 */
#pragma once

#include "user/scan/snapshot.h"

/* One thread that is stopped, or should be. */
struct held_thread {
	pid_t tid;
	u8 state;  /* enum held_state */
	u8 stop;   /* enum stop */
	u8 signal; /* signal that was about to be delivered: pass it on when the thread is resumed */
};

enum held_state {
	HELD_WAITING, /* asked to stop, not stopped yet */
	HELD_STOPPED,
	HELD_BEFORE, /* this tracer had stopped it before: leave it so */
	HELD_GONE,
};

struct held_threads {
	pid_t pid;
	struct held_thread *threads; /* owned; by tid */
	size_t nr, max;
	const struct snapshot_holder
		*holder;    /* borrowed; it has stopped all threads and reads their registers. Or NULL */
	bool may_be_traced; /* the calling thread may trace some of them already */
	bool is_growing;    /* new threads appeared in the last pass */
};

/*
 * Stop every thread. Blocks until @deadline_ns at most. 0 even if some threads do not stop (held_unstopped()); -ETIME
 * if none does, or there is no time to ask all of them; -ESRCH no such process; -EPERM no right, or another process
 * traces it; -ENOMEM. On an error all threads are resumed.
 */
int held_stop(struct held_threads *h, u64 deadline_ns) __must_check;

/* Threads that did not stop. */
size_t held_unstopped(const struct held_threads *h);

/* Fill the threads and the words of registers of @s. 0; -ESRCH if all threads have ended; -ETIME, -ENOMEM. */
int held_read_registers(const struct held_threads *h, struct snapshot *s, u64 deadline_ns) __must_check;

/*
 * Detach from all threads, with their signals, so that they run again. The kernel detaches from a thread that never
 * stopped when the calling thread ends. Frees what @h owns.
 */
void held_resume(struct held_threads *h);

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Stop and let go of all threads of a process by ptrace. All calls come from one thread: ptrace belongs to threads. */
#pragma once

#include "user/snapshot.h"

/* One thread that we hold or tried to. */
struct held_thread {
	pid_t tid;
	u8 state;  /* enum held_state */
	u8 signal; /* it stands before the delivery of this one: hand it over when letting go */
};

enum held_state {
	HELD_WAITING, /* asked to stop */
	HELD_STOPPED,
	HELD_BEFORE, /* stood already under this tracer: stays as it is */
	HELD_GONE,
};

struct held_threads {
	pid_t pid;
	struct held_thread *threads; /* owned; by tid */
	size_t nr, capacity;
	const struct snapshot_holder
		*holder;    /* borrowed; all threads stand already, and it has their registers */
	bool may_be_traced; /* by the calling thread */
	bool is_growing;    /* new threads appeared in the last pass */
};

/*
 * Stop every thread; until @deadline_ns. 0 even if some do not stop (held_unstopped()), -ESRCH no such process,
 * -EPERM no right or another tracer (logged), -ENOMEM. On error nothing is held.
 */
int held_stop(struct held_threads *h, u64 deadline_ns) __must_check;

/* Threads that run on. */
size_t held_unstopped(const struct held_threads *h);

/* Fill threads and registers of @s. 0, -ESRCH if no thread is left, -ENOMEM. */
int held_read_registers(const struct held_threads *h, struct snapshot *s) __must_check;

/*
 * Let all go, with their signals. A thread that never stopped is let go by the kernel when the
 * calling thread ends. Releases what @h owns.
 */
void held_resume(struct held_threads *h);

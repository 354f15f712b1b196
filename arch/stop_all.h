/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * All threads of a process, stopped by ptrace for a while. All calls must come from one thread, because to ptrace the
 * tracer is a thread.
 */
#pragma once

#include "arch/stop.h"
#include "user/lib/hash_index.h"

/* The tracer of the process. */
enum stop_by {
	STOP_BY_US, /* the calling thread, from the stop to its end */
	STOP_BY_TRACER, /* the calling thread, before and after, which handles all stops that were not asked for here */
	STOP_BY_ITSELF, /* likewise, and no thread is asked: all are about to stop, at their ends */
	STOP_BY_OTHER,	/* another one, which has stopped all threads */
};

enum stopped_state {
	STOP_ASKED_FOR, /* seized and asked to stop */
	STOP_AWAITED,	/* traced before, and asked to stop */
	STOP_TAKEN,	/* seized and stopped */
	STOP_NOTED,	/* traced before, and stopped as asked: nobody has waited for that yet */
	STOP_HANDLED,	/* the same, and stop_all_take() has waited for it */
	STOP_BEFORE,	/* it was stopped before, and stays so */
	STOP_ENDED,	/* the thread has ended */
};

struct stopped_thread {
	pid_t tid;
	enum stopped_state state;
	enum stop stop; /* STOP_TAKEN */
	int sig;	/* STOP_TAKEN: to be delivered when the thread goes on */
};

struct stopped_threads {
	pid_t pid;
	enum stop_by by;
	/* How the first thread goes on if it is traced before and after; 0 = by PTRACE_CONT, like the others. */
	int first_request;
	struct stopped_thread *threads; /* owned */
	size_t nr, max;
	struct hash_index by_tid; /* of threads */
	bool is_growing;	  /* new threads appeared in the last pass */
	/*
	 * The calling thread goes on afterwards: it ends by stop_all_release(), also after errors. Meanwhile BPF stops
	 * threads by a SIGCHLD of the kernel, which is discarded.
	 */
	bool is_switch;
	long stay_options; /* not 0: threads that go on stay traced by the caller, with these options of ptrace */
};

/*
 * Stop all threads of s->pid, as s->by says, the rest of @s being 0. Blocks until @end_ns at most. 0 even if some do
 * not stop (stop_all_running()); -ETIME: none does, or there is no time to ask all; -ESRCH no such process; -EPERM no
 * right, or another process traces it; -ENOMEM. After an error all threads run.
 */
int stop_all_begin(struct stopped_threads *s, u64 end_ns) __must_check;

/* Threads that have not stopped. */
size_t stop_all_running(const struct stopped_threads *s);

/* Is @t stopped, so that its registers can be read? */
static inline bool stop_all_has(const struct stopped_thread *t)
{
	return t->state != STOP_ASKED_FOR && t->state != STOP_AWAITED && t->state != STOP_ENDED;
}

/*
 * For STOP_BY_US: let the threads run for @ns that @wants names, unless all of them stop before, and those that they
 * make. Stop them again until @end_ns. 0, or as stop_all_begin().
 */
int stop_all_step(struct stopped_threads *s, bool (*wants)(void *ctx, const struct stopped_thread *t),
		  void *ctx, u64 ns, u64 end_ns) __must_check;

/* For STOP_BY_TRACER: take the stop of @t, which was asked for, by wait(2). False: the tracer has to handle it. */
bool stop_all_take(struct stopped_thread *t);

/*
 * Let all threads go on that were stopped here; frees what @s owns. The kernel detaches from a thread that never
 * stopped when the calling thread ends.
 */
void stop_all_end(struct stopped_threads *s);

/*
 * Let all threads go on that have stopped, without waiting for the others. Returns how many those are: call it again
 * until there are none, or they would stop for ever. @s owns nothing then.
 */
size_t stop_all_release(struct stopped_threads *s);

/* Free what @s owns: the threads stay as they are. */
void stop_all_forget(struct stopped_threads *s);

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The states of traced threads: what is owed in each, and which one may follow. */
#pragma once

#include "user/lib/types.h"

struct tracer_thread;

/*
 * The state of a thread, and what the tracer owes in it. Changed by tracer_set_thread_state() only, which has the table
 * of transitions. A thread that ends in any state is forgotten.
 */
enum tracer_thread_state {
	/* Runs the program, or sleeps in a system call. PTRACE_INTERRUPT stops it. */
	THREAD_RUNNING,
	/* In a ptrace stop. Owed: PTRACE_CONT (with its signal) -> RUNNING, or PTRACE_DETACH. */
	THREAD_STOPPED,
	/* In the ptrace stop of SIGSTOP and its like. Owed: PTRACE_LISTEN -> LISTENING, or PTRACE_DETACH. */
	THREAD_GROUP_STOPPED,
	/* Runs nothing before SIGCONT. PTRACE_INTERRUPT gives a new ptrace stop -> GROUP_STOPPED or STOPPED. */
	THREAD_LISTENING,
	/* In the stop of a vfork() that it calls. Owed: PTRACE_CONT -> IN_VFORK, or PTRACE_DETACH. */
	THREAD_AT_VFORK,
	/* Sleeps until its child ends or executes a program, and cannot be stopped before; then -> STOPPED. */
	THREAD_IN_VFORK,
	/* Ends: it runs no more of the program. Owed: PTRACE_CONT -> EXITING, or PTRACE_DETACH. */
	THREAD_AT_EXIT,
	/* On its way to its end. An exec by another thread gives its TID to that one: -> STOPPED. */
	THREAD_EXITING,
	NR_THREAD_STATES
};

/* Is it in a ptrace stop, so that its registers can be read and it must be resumed or detached? */
static inline bool thread_state_is_stopped(enum tracer_thread_state s)
{
	return s == THREAD_STOPPED || s == THREAD_GROUP_STOPPED || s == THREAD_AT_VFORK ||
	       s == THREAD_AT_EXIT;
}

/* Is it certain that the program runs no instruction in this state? A thread in vfork() stops as soon as it may. */
static inline bool thread_state_is_at_rest(enum tracer_thread_state s)
{
	return s != THREAD_RUNNING && s != THREAD_LISTENING;
}

/* May @to follow @from? */
bool thread_state_may_follow(enum tracer_thread_state from, enum tracer_thread_state to);

/* Change the state. A change that the table does not have is made, too, and shown with -v: the kernel knows better. */
void tracer_set_thread_state(struct tracer_thread *th, enum tracer_thread_state state);

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The events that wait(2) reports of a thread that is traced by ptrace, and the signals behind them. */
#pragma once

#include "user/lib/types.h"

/* One comment each says what the tracer owes. A stopped thread must be resumed, now or later. */
enum stop {
	STOP_GONE,	 /* the thread has ended: forget it, and the process with its last thread */
	STOP_SIGNAL,	 /* a signal is on its way: deliver it */
	STOP_TRAP,	 /* SIGTRAP: at a breakpoint of ours do what the place is for, else deliver it */
	STOP_GROUP,	 /* SIGSTOP or its like has stopped the process: it stays stopped until SIGCONT */
	STOP_ASKED,	 /* PTRACE_INTERRUPT, SIGCONT, or the first stop of a new thread */
	STOP_CHILD,	 /* a thread or process was made: trace that, too */
	STOP_VFORK,	 /* like STOP_CHILD; the thread sleeps in vfork() when it is resumed */
	STOP_VFORK_DONE, /* the child no longer uses the memory: the thread runs again */
	STOP_EXEC,	 /* another program, which has only one thread: forget all of the old program */
	STOP_EXIT,	 /* the thread will end: the last moment of its memory, if it is the last thread */
	STOP_SYSCALL,	 /* in a program that starts: it may have mapped code */
	NR_STOPS
};

enum stop stop_of(int status);

/* The signal that is on its way in a stop with @status, 0 = the stop is an event. */
int stop_signal(int status);

/* The si_code of what thread @tid has stopped for: above 0 if the kernel itself has sent the signal. 0 = not known. */
int stop_code(pid_t tid);

/* Is thread @tid in a ptrace stop of the caller, whether wait(2) has reported that or not? */
bool stop_is_there(pid_t tid);

/*
 * Thread @tid is stopped. Does a signal @sig that the kernel has sent to it wait behind that stop? After a detach
 * nobody would take the signal away: SIGTRAP of a breakpoint would kill the process.
 */
bool stop_hides_signal(pid_t tid, int sig);

/*
 * Does thread @tid, which is stopped, block @sig? And: it does from now on. The kernel takes SIGTRAP out of the mask at
 * each breakpoint. No effect before Linux 3.11.
 */
bool stop_blocks(pid_t tid, int sig);
void stop_block(pid_t tid, int sig);

/*
 * Let thread @tid go on from its stop, which was @stop, by PTRACE_CONT, PTRACE_DETACH or another @request, and deliver
 * @sig, 0 = none. All stops of a target end here. A system call that waited, and that the stop would have fail with
 * EINTR although no handler of a signal has run, waits on. 0 or -errno.
 */
int stop_end(pid_t tid, enum stop stop, int request, int sig);

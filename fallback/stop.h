/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The events that wait(2) reports of a thread that is traced by ptrace. */
#pragma once

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

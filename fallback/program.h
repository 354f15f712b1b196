/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A program from its exec to its end, for all who follow one by ptrace: the tracer, and user/source/launch.c. Where the
 * dynamic linker's work ends, and which thread's exit is the end of the program.
 */
#pragma once

#include "user/lib/types.h"

/* Changed by program_set_state() only. An exec leads from any state to STARTING or RUNNING. */
enum program_state {
	/* Runs. */
	PROGRAM_RUNNING,
	/* A process that waits for its first exec: its end is not reported. */
	PROGRAM_WAITING,
	/*
	 * The dynamic linker works. The system calls of the first thread show new code, unless a probe tells of it; a
	 * breakpoint at the entry point shows the end of this phase -> RUNNING.
	 */
	PROGRAM_STARTING,
	/* About to end, still with its memory, and held until that was looked at -> ENDING. */
	PROGRAM_AT_END,
	/* The end was reported, and the threads run to their ends. */
	PROGRAM_ENDING,
	/* Detached, because another process is to trace it: nothing of it is reported any more. */
	PROGRAM_LEFT,
	NR_PROGRAM_STATES
};

enum {
	PROGRAM_KILLER_NS = 500 * 1000 * 1000,	   /* how long to wait for the thread that ends a program */
	PROGRAM_EXIT_HOLD_NS = 1000 * 1000 * 1000, /* and for its other threads to stop at their ends */
};

struct places;

struct program {
	enum program_state state;
	bool has_new_code; /* STARTING: it mapped code that was not reported yet */
	bool is_told; /* STARTING: a probe tells when the libraries are there, and no system call need be seen */
	taddr_t entry; /* where its dynamic linker hands over; 0 = not known */
	/* Until then killed threads do not wait for a killer: one waited in vain, so this is an exec. */
	u64 no_killer_until_ns;
};

bool program_state_may_follow(enum program_state from, enum program_state to);

/* Change the state. A change that the table does not have is made, too, and shown with -v. */
void program_set_state(struct program *p, pid_t pid, enum program_state state);

/* @pid has executed a program. False if that has no dynamic linker; else p->entry is set, for PROGRAM_STARTING. */
bool program_find_entry(struct program *p, pid_t pid, bool is_32bit);

/*
 * Put a breakpoint in at p->entry -> STARTING. @places: of process @pid, which is at its first instruction. 0, or the
 * error of places_add(): then the start is not followed.
 */
int program_follow_start(struct program *p, struct places *places, pid_t pid) __must_check;

/*
 * Process @pid has a copy of the memory of @parent, and goes the rest of the way to the entry point if the breakpoint
 * is in there. @places: of @pid, still empty; @from: of @parent. 0 or -ENOMEM.
 */
int program_copy(struct program *p, struct places *places, pid_t pid, const struct program *parent,
		 const struct places *from) __must_check;

/* PTRACE_SYSCALL or PTRACE_CONT: how to resume thread @tid of the program. */
int program_resume_request(const struct program *p, pid_t pid, pid_t tid);

/* Is the end of the program still to come, and to be reported? */
bool program_is_alive(const struct program *p);

/* The status, as wait(2) will give it, of @tid, which has stopped at PTRACE_EVENT_EXIT. 0 or -ESRCH. */
int program_exit_status(pid_t tid, int *status) __must_check;

/* The meaning of the exit of one thread. */
enum program_exit {
	PROGRAM_EXIT_THREAD, /* the program runs on */
	PROGRAM_EXIT_ALL,    /* the program ends, by this thread or by a signal */
	PROGRAM_EXIT_KILLED, /* another thread ends the program, or executes another one */
};

/* Thread @tid has stopped at PTRACE_EVENT_EXIT with @status. @is_last: all other threads have exited. */
enum program_exit program_exit_kind(const struct program *p, pid_t tid, int status, bool is_last);

/* A killed thread has waited for its killer in vain. */
void program_has_no_killer(struct program *p);

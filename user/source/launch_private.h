/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The parts of a launch, for user/source/launch*.c only. */
#pragma once

#include "arch/stop_all.h"
#include "fallback/places.h"
#include "fallback/program.h"
#include "user/source/launch.h"

enum {
	LAUNCH_POLL_NS = 50 * 1000,
	LAUNCH_LEAVE_NS = 500 * 1000 * 1000, /* for a thread to stop, so that it can be detached */
};

/* A process that we trace, or have left: the program, or a child of it. */
struct launched {
	pid_t pid;
	struct program program;
	/* The breakpoint at the entry point. It stays in the table, because a copy of the process may still have it. */
	struct places places;
	struct stopped_threads held; /* by launch_hold() */
	bool is_newborn;	     /* its first stop was not seen yet */
	bool blocks_trap;	     /* SIGTRAP, in PROGRAM_STARTING */
	bool has_forked;	     /* in PROGRAM_STARTING: the copy has our breakpoint, too */
};

/* The report of wait(2) of a thread. */
struct launch_event {
	pid_t tid;
	int status;
};

struct launch {
	pid_t pid; /* of the program; 0 = none: processes have joined */
	struct launch_hooks hooks;
	struct source *source;		    /* borrowed, as tracer */
	const struct source_tracer *tracer; /* NULL = we are */
	u32 max_children;
	struct launched **processes; /* owned, and each; the program first, if there is one */
	size_t nr;
	int nr_unborn; /* children that were reported and have not stopped yet; below 0 if some stopped first */
	bool has_ended;
	int status;
	struct launch_event *later; /* owned; taken by launch_attend() */
	size_t nr_later, max_later;
	/* Pipes to the child and from it, until its exec; owned. */
	int go[2], report[2];
};

static inline bool launch_is_left(const struct launched *p)
{
	return p->program.state == PROGRAM_LEFT;
}

/* Did the launch start a program? If not, running processes have joined it, which needs the source inline. */
static inline bool launch_has_program(const struct launch *l)
{
	return IS_AGENT || l->pid;
}

/* The program; NULL = there is none. */
static inline struct launched *launch_program(const struct launch *l)
{
	return launch_has_program(l) ? l->processes[0] : NULL;
}

/* The number of the first process that is not the program. */
static inline size_t launch_first_child(const struct launch *l)
{
	return launch_has_program(l) ? 1 : 0;
}

/* The ptrace options of all threads, but for those of a program that starts. */
long launch_ptrace_options(const struct launch *l);

/* List @pid, which runs. 0 or -ENOMEM. */
int launch_add(struct launch *l, pid_t pid, struct launched **out) __must_check;

/* Thread @tid of @p goes on from its stop, which was @stop, and gets @sig. */
void launch_resume(const struct launched *p, pid_t tid, enum stop stop, int sig);

/* Stop the threads of @p until launch_release(): 0, also if some do not stop in time; or as stop_all_begin(). */
int launch_stop(struct launched *p, u64 max_ns) __must_check;

/* Wait until the threads of @p have stopped, @by tells why, and leave them so. */
void launch_await_stops(const struct launched *p, enum stop_by by);

/* Detach from all threads of @p. */
void launch_leave_process(struct launch *l, struct launched *p);

/* The process @pid, NULL = it is none of ours. */
struct launched *launch_find(const struct launch *l, pid_t pid);

/* Thread @tid gets signal @sig. If the reason is our breakpoint at the entry point, take that out. */
bool launch_reached_entry(const struct launch *l, struct launched *p, pid_t tid, int sig);

/* Thread @tid gets signal @sig. If the reason is a copy of code with a breakpoint, that was taken out there. */
bool launch_mends_copy(const struct launch *l, const struct launched *p, pid_t tid, int sig);

/* Was signal @sig of thread @tid sent by a probe? */
bool launch_is_from_probe(pid_t tid, int sig);

/* The stop of thread @tid reports a child: a process, or a thread. */
void launch_note_birth(struct launch *l, pid_t tid);

/* Handle what launch_attend() has left. */
void launch_attend_later(struct launch *l);

/* Handle @status, which wait(2) has reported of thread @tid. */
void launch_handle_status(struct launch *l, pid_t tid, int status);

/* Free the process that was added last. */
void launch_forget_last(struct launch *l);

/*
 * A probe has stopped thread @tid of @p for the reason @why, which is not THREAD_STOP_LOOK, and wait(2) has reported
 * that: do what the thread needs, and resume it.
 */
void launch_stopped_for(struct launch *l, struct launched *p, pid_t tid, const struct thread_stop *why);

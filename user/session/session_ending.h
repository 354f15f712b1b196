/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The end of a process: the last moment for a verdict, and interpreters that drop their objects before it. */
#pragma once

#include <sys/types.h>

#include "user/lib/types.h"

struct launch;
struct launch_hooks;
struct process;
struct session;
struct session_stopper;

/*
 * With wants_end of the source: call hooks->exiting of each process that the source holds at its end, and let it end.
 * Those that call _exit() and wait there for a moment join *@l (launch_await_end()), which calls it.
 */
void session_await_ends(struct session *s, struct launch **l, const struct launch_hooks *hooks);

/*
 * Find a verdict on @pid, which is at execve(). @is_stopped: by the calling thread; else @stopper as in session_scan().
 */
void session_scan_before_exec(struct session *s, pid_t pid, bool is_stopped,
			      const struct session_stopper *stopper);

typedef void exec_judge(void *ctx, pid_t pid, bool is_stopped);
/* Call @judge of each process that is at execve(), and let it go on. For sessions that pass on what they learn. */
void session_judge_before_exec(struct session *s, exec_judge *judge, void *ctx);

/* Before the end of @pid, and before reports: does it have children that nothing follows? A note says so then. */
void session_look_at_children(struct session *s, pid_t pid);

/* @p has a new verdict: remember it. */
void session_note_verdict(struct process *p);

/* @p has ended: a verdict of before is none of its last state, and the report says so, and what would have one. */
void session_note_end(const struct session *s, struct process *p);

/*
 * If @p has ended by itself with leaks, and its interpreter is known to drop objects before that: one sentence about
 * it, for the report. Else NULL.
 */
const char *session_ending_note(const struct process *p);

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The end of a process: the last moment for a verdict, and interpreters that drop their objects before it. */
#pragma once

#include <sys/types.h>

struct process;
struct session;

/* A process that calls _exit() and waits there for a moment, each once; 0 = none. With wants_end of the source. */
pid_t session_next_ending(struct session *s);

/* Find the verdicts of processes that the source holds at their ends, with wants_end, and let them end. */
void session_judge_held(struct session *s);

/* @p has a new verdict: remember it. */
void session_note_verdict(struct process *p);

/* @p has ended: a verdict of before is none of its last state, and the report says so. */
void session_note_end(struct process *p);

/*
 * If @p has ended by itself with leaks, and its interpreter is known to drop objects before that: one sentence about
 * it, for the report. Else NULL.
 */
const char *session_ending_note(const struct process *p);

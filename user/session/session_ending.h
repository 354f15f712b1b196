/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The end of a process: the last moment for a verdict, and interpreters that drop their objects before it. */
#pragma once

#include <sys/types.h>

struct process;
struct session;

/* A process that calls _exit() and waits there for a moment, each once; 0 = none. With wants_end of the source. */
pid_t session_next_ending(struct session *s);

/*
 * If @p has ended by itself with leaks, and its interpreter is known to drop objects before that: one sentence about
 * it, for the report. Else NULL.
 */
const char *session_ending_note(const struct process *p);

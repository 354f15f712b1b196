/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of threads, for reports, recordings and clients. For user/session/session*.c only. */
#pragma once

#include "user/lib/types.h"

struct heap;
struct process;
struct session;

/*
 * Read the names of new threads of this machine, and once more after half a second, because most threads set their
 * name late. @is_last: read all of them now. Threads that have ended before have no name. Does not stop the target.
 */
void session_threads_look(struct session *s, bool is_last);

/* @p has new books in place of @old: keep the names that another machine told, and read all others again. */
void session_threads_keep(struct session *s, struct process *p, const struct heap *old);

/* Write the names that are known into a new part of the recording, or to a client that has come. */
void session_threads_tell(struct session *s, const struct process *p);

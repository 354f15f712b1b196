/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of this machine's threads, for a recording: looked up beside the events, never while a thread waits. */
#pragma once

#include "user/lib/types.h"

enum { THREAD_NAME_LEN = 16 };

struct thread_names;

int thread_names_new(struct thread_names **out) __must_check;
void thread_names_free(struct thread_names *t); /* NULL is nothing */

/* The thread has been seen. For each event: cheap. */
void thread_names_note(struct thread_names *t, u32 pid, u32 tid);

/*
 * Look up those that are new, and after half a second once more, as most name themselves late; @is_last: all of them
 * now. @say is called for each name that is new. Ones that have ended before have none.
 */
void thread_names_look(struct thread_names *t, u64 now_ns, bool is_last,
		       void (*say)(void *ctx, u32 pid, u32 tid, const char *name), void *ctx);

/* Nothing has been said yet. */
void thread_names_forget(struct thread_names *t);

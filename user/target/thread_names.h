/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names of the threads of this machine, for a recording. Names are looked up apart from the events, never while a
 * thread waits.
 */
#pragma once

#include "user/lib/types.h"

enum { THREAD_NAME_LEN = 16 };

struct thread_names;

int thread_names_new(struct thread_names **out) __must_check;
void thread_names_free(struct thread_names *t); /* NULL is nothing */

/* Note an event of a thread. Cheap: called for each event. */
void thread_names_note(struct thread_names *t, u32 pid, u32 tid);

/*
 * Look up the new threads, and once more after half a second, because most threads set their name late. @is_last:
 * look all of them up now. @say is called for each new name. Threads that have ended before have no name.
 */
void thread_names_look(struct thread_names *t, u64 now_ns, bool is_last,
		       void (*say)(void *ctx, u32 pid, u32 tid, const char *name), void *ctx);

/* Nothing has been said yet. */
void thread_names_forget(struct thread_names *t);

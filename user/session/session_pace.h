/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Limits of what single processes of a session pay: their pace, windows, and files that nobody traces any more. */
#pragma once

#include "user/session/session_tune.h"

/* Process number @i of the *@nr of @s, with its calls so far; NULL: it does not run, or no report has it. */
struct process_pace *session_pace(struct session *s, size_t i, size_t *nr);

/*
 * Until session_resume_process(), meant for @until_ns, calls of @pid are not seen. Blocks that are live now become
 * unsure. Resumed, it begins a new window with empty books, as if heaptap had attached to it then. 0; -ESRCH: it has
 * ended; or another -errno.
 */
int session_pause_process(struct session *s, pid_t pid, u64 now_ns, u64 until_ns) __must_check;
int session_resume_process(struct session *s, pid_t pid, u64 now_ns) __must_check;

/* At most @sum samples a second of all processes of @s together, if their distances change. False: they do not. */
bool session_limit_samples(struct session *s, u32 sum);

/* The allocator's file, the first one if there are several, of process @pid; NULL = none. Borrowed. */
const struct module *session_file_of(struct session *s, pid_t pid);

/*
 * Take the probes of file @m out of all processes, for good. Those that use it keep what they have, and their reports
 * say so. 0; -EOPNOTSUPP: its probes are not shared; or another -errno.
 */
int session_leave_file(struct session *s, const struct module *m) __must_check;

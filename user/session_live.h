/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a console asks of a session while it goes on, beside session_tune() and session_show(). */
#pragma once

#include "user/session.h"

/* Its verdicts are used up. */
void session_forget_verdicts(struct session *s);

/* Is there, or was there, such a process? */
bool session_knows(const struct session *s, pid_t pid);

/* Events of all processes so far. */
u64 session_events(const struct session *s);

/*
 * Forget all that is known of the heaps of processes that run, as if they had been attached to now; those that have
 * ended are left as they are. -EBUSY while the events are recorded; -ENOMEM: some have been forgotten.
 */
int session_reset(struct session *s) __must_check;

/*
 * This moment gets the name @text in the recording, behind all that has happened, also on the machine that is told
 * (waits for it, as session_tune() does). -ENOTCONN: nothing is recorded; or another -errno.
 */
int session_set_marker(struct session *s, const char *text) __must_check;

/* Record from now on, by the --record of its options, which is there. -EBUSY if it does; or -errno, logged. */
int session_record(struct session *s) __must_check;
bool session_is_recording(const struct session *s);
/* No more. -ENOENT: nothing is recorded; -EIO: something could not be kept. */
int session_record_end(struct session *s) __must_check;

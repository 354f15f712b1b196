/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A session on a file: opening it, and reading on in it. */
#pragma once

#include "user/session/session_options.h"

struct outputs;
struct session;

/*
 * A session on the file @path, a recording or a text list of events (user/stream/event_list_read.h), with all of its
 * records entered; "-" is standard input. Records before a damage are entered too, and then
 * session_status() reports the damage. 0; or -EINVAL or another -errno, logged, if nothing of the file can be
 * understood; or -ECANCELED, not logged, if options.is_unwanted says so of a
 * recording. Shows progress on a terminal.
 */
int session_new_replay(struct session **out, const struct session_options *o, struct outputs *outs,
		       const char *path) __must_check;
/*
 * @s is the recording @path from its start to one moment, with keeps_place: read on to the end of @between, which is
 * borrowed. 0; -EAGAIN: this needs another session_new_replay(), and @s is as it was; or another -errno, logged unless
 * it is -ECANCELED: @s is of no use any more.
 */
int session_go_on(struct session *s, const struct span *between, const char *path) __must_check;

/* The exit status for an error of session_new_replay(). */
int session_replay_status(int err);

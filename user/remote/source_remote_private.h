/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Functions that the files of the remote source share: user/remote/source_remote*.c. */
#pragma once

#include "user/remote/source_remote_state.h"
#include "user/remote/wire.h"
#include "user/source/source_told.h"

static inline bool source_remote_is_over(const struct remote_source *s)
{
	return s->trace.life >= REMOTE_COMPLETE;
}

/*
 * Handle the frames that have come, without waiting. Stops at a mark, unless @is_past. Returns the number of frames,
 * -ENODATA after the last one, or -errno.
 */
int source_remote_take(struct remote_source *s, const struct sink *sink, bool is_past);

/* Put a frame into the queue. 0 or -errno. */
int source_remote_put(struct remote_source *s, u8 kind, const void *data, size_t len) __must_check;

/*
 * Handle frames, as source_remote_take(), until @is_done. Returns 0, the scan's error, -ETIMEDOUT after @silence_ms
 * without a frame, -EINTR after a signal that wants heaptap to end, or -errno.
 */
int source_remote_wait(struct remote_source *s, const struct sink *sink, bool is_past, u64 silence_ms,
		       bool (*is_done)(const struct remote_source *s)) __must_check;

/* WIRE_TUNED. */
void source_remote_on_tuned(struct remote_source *s, struct wire_view *v);

/* Send a command. Its answer lowers tuning.nr_unanswered. */
int source_remote_command_put(struct remote_source *s, const struct tuning *t) __must_check;

/* The functions of struct source_told_ops for commands. */
int source_remote_tune(struct source *s, const struct tuning *t, const struct sink *sink, char *why,
		       size_t size);
int source_remote_pause_one(struct source *s, pid_t pid, bool is_paused, const struct sink *sink, char *why,
			    size_t size);

/* Frames of a scan. */
void source_remote_on_mark(struct remote_source *s, struct wire_view *v);
void source_remote_on_verdicts(struct remote_source *s, struct wire_view *v);
void source_remote_on_scanned(struct remote_source *s, struct wire_view *v);
void source_remote_on_books(struct remote_source *s, struct wire_view *v);
void source_remote_on_chain(struct remote_source *s, struct wire_view *v);
void source_remote_on_chain_end(struct remote_source *s, struct wire_view *v);

/* The connection was lost: a scan under way fails. */
void source_remote_lose_scan(struct remote_source *s);

/* The functions of struct source_told_ops for scans. */
int source_remote_scan_begin(struct source *s, struct source_scan *o) __must_check;
int source_remote_scan_blocks(struct source *s, struct source_scan *o, struct scan *scan) __must_check;
int source_remote_scan_wait(struct source *s, struct source_scan *o, struct scan *scan) __must_check;
int source_remote_scan_why(struct source *s, struct source_scan *o, taddr_t addr,
			   struct scan_chain **out) __must_check;
void source_remote_scan_over(struct source *s);

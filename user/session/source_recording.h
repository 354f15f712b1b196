/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A recording as a source: its records fill a session. */
#pragma once

#include "user/source/source.h"

struct seek_point;
struct session;

/*
 * Made by source_recording_new() instead of create(). Nothing is attached: processes, mappings, verdicts appear in the
 * session as the stream brings them. poll() delivers nothing; source_recording_feed() does.
 */
extern const struct source_ops source_recording;

/*
 * A source for @s, which owns *@out; all processes of @s come from the stream. @max_memory limits the bytes of heaps,
 * stacks and names. @line: as in struct stream_handler. 0 or -ENOMEM.
 */
int source_recording_new(struct source **out, struct session *s, u64 max_memory,
			 const u64 *line) __must_check;

/* Enter the records in these bytes. 0, or as stream_feed(); source_recording_why() explains an error. */
int source_recording_feed(struct source *src, const void *data, size_t len) __must_check;

/* The bytes so far were the state at @p: the ones that come now are those behind that seek point. 0 or -errno. */
int source_recording_resume(struct source *source, const struct seek_point *p) __must_check;

/* Halt at the end of the session's span: source_recording_feed() returns STREAM_HALT there. */
void source_recording_halt(struct source *source);

/* After that, with another span: as stream_go_on(). */
int source_recording_go_on(struct source *source, u64 *offset) __must_check;

/* The stream has ended, or has halted. 0, -ENODATA or an earlier error. */
int source_recording_finish(struct source *src) __must_check;

/* One line without full stop about the last error. */
const char *source_recording_why(const struct source *src);

/* How many records and chunks were skipped, because they are of kinds that this heaptap does not know. */
u64 source_recording_unknown(const struct source *src);

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The source that a recording is: fills a session with what it says. */
#pragma once

#include "user/source.h"

struct session;

/*
 * Made by source_recording_new() instead of create(). Nothing is attached: processes, mappings, verdicts appear in the
 * session as the stream brings them. poll() delivers nothing; source_recording_feed() does.
 */
extern const struct source_ops source_recording;

/*
 * For @s, which owns *@out and whose processes are only those of the stream. @max_memory bytes for books, stacks and
 * names, and 64 for each byte that comes in if that is more; 0 = 160 MiB. 0 or -ENOMEM.
 */
int source_recording_new(struct source **out, struct session *s, u64 max_memory) __must_check;

/* Enter what these bytes bring. 0, or as stream_feed(); then source_recording_why() says what and where. */
int source_recording_feed(struct source *src, const void *data, size_t len) __must_check;

/* They have ended. 0, -ENODATA or the error of before. */
int source_recording_finish(struct source *src) __must_check;

/* One line without full stop about the last error. */
const char *source_recording_why(const struct source *src);

/* What the stream said of itself; "" before. */
const char *source_recording_backend(const struct source *src);
const char *source_recording_machine(const struct source *src);

struct stream_progress source_recording_progress(const struct source *src);

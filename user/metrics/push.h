/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sends profiles to a server that keeps them, each minute and at the end. A helper process does it, by libcurl. */
#pragma once

#include "user/lib/types.h"

struct metrics_feed;
struct push;

/* Is there such a thing in this build? */
extern const bool push_is_built;

/*
 * Push to @url, which stays the caller's: http:// or https://, Pyroscope's /ingest, where @name is the name of the
 * application; or otlp:// or otlps://, a receiver of OpenTelemetry. Forks: before there are threads. 0; or, logged,
 * -EINVAL for another URL, or -errno.
 */
int push_open(struct push **out, const char *url, const char *name) __must_check;

/* Send a profile if one is due, and say what became of the last one. For each round of a loop. NULL is fine. */
void push_round(struct push *p, const struct metrics_feed *feed);

/* Send the last profile, and wait for at most 10 s until it has arrived. NULL is fine. */
void push_end(struct push *p, const struct metrics_feed *feed);
void push_free(struct push *p);

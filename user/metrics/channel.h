/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Messages between heaptap and its helper that serves HTTP. Contents travel as descriptors of sealed memory. */
#pragma once

#include <stdio.h>

#include "user/lib/types.h"

enum channel_kind {
	CHANNEL_READY,	  /* from the helper: it serves; or status and text say why not */
	CHANNEL_SCRAPED,  /* from the helper: somebody reads metrics */
	CHANNEL_QUESTION, /* from the helper: a profile is wanted */
	CHANNEL_SNAPSHOT, /* to the helper: all metrics of this moment, with a descriptor */
	CHANNEL_ANSWER,	  /* to the helper: a profile, with a descriptor; or status and text */
};

enum { CHANNEL_TEXT = 200 };

/* Questions beside the profiles of enum pprof_kind: the page for a browser, and its data alone. */
enum { CHANNEL_PAGE = 16, CHANNEL_PAGE_DATA };

/* Which profile, or the page. Both ends are one program, so that this is no wire format. */
struct profile_key {
	u32 kind;	     /* enum pprof_kind, CHANNEL_PAGE or CHANNEL_PAGE_DATA */
	pid_t pid;	     /* 0 = not named */
	char container[128]; /* "" = not named */
};

struct channel_message {
	u32 kind;
	u32 id;	     /* of a question */
	u32 status;  /* of HTTP, when there is no descriptor */
	u32 make_ms; /* that heaptap took to make the profile */
	struct profile_key key;
	char text[CHANNEL_TEXT]; /* a reason */
};

/* Send @m with descriptor @fd (-1 = none) without waiting. 0; -EAGAIN: the other end is busy; or -errno. */
int channel_send(int channel, const struct channel_message *m, int fd) __must_check;

/* Take the next message. The caller owns *@fd, -1 = none. 0; -EAGAIN: there is none; -EPIPE: the other end is gone. */
int channel_take(int channel, struct channel_message *m, int *fd) __must_check;

/*
 * A file in memory that only the holder of its descriptor sees: call @write with a stream, then seal it. The caller
 * owns *@fd. 0 or -errno, also of @write.
 */
int channel_make_file(int *fd, const char *name, int (*write)(void *ctx, FILE *out), void *ctx) __must_check;

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The remote source: what a heaptap serve elsewhere sees. */
#pragma once

#include "user/remote_link.h"
#include "user/source.h"
#include "user/tuning.h"

struct source_remote_options {
	struct remote_link_options link;
	struct tuning tuning; /* at first */
	bool want_mmap, no_cpp, wants_exit_scan;
};

extern const struct source_ops source_remote;

/*
 * Connect. Records come by poll(), which gives -ENODATA once nothing more can come: the target's end, a connection
 * that is lost for good (source_remote_why()). *@out is owned by the caller. 0 or -errno, logged.
 */
int source_remote_open(struct source **out, const struct source_remote_options *o,
		       struct module_table *modules) __must_check;

/* How it ended, for the user; "" = well. */
const char *source_remote_why(const struct source *s);

/* All that the server saw has come, or was counted as lost. */
bool source_remote_is_complete(const struct source *s);

/* The server traces, and has named a process. */
bool source_remote_is_started(const struct source *s);

/* Ask for the end: probes out, the last records. They come by poll() until it gives -ENODATA. */
void source_remote_stop(struct source *s);

/* Ask for the target's end: 0 or -errno. */
int source_remote_kill(struct source *s);

/* A program that is at its end waits for its verdict: its pid, else 0. No records come until it was scanned. */
pid_t source_remote_exiting(const struct source *s);
/* Or not. */
void source_remote_let_exit(struct source *s);

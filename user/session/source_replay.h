/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The source whose events come from a text file, for tests without root and without a target. */
#pragma once

#include <stdio.h>

#include "user/source/source.h"

/*
 * Made by source_replay_open() instead of create(), which reads and checks the whole file (format:
 * user/session/source_replay_read.c). attach() finds the process in the file or gives -ESRCH; update() does nothing;
 * poll() delivers the records of all processes in the order of the file, never waits, and gives 0 at the end.
 */
extern const struct source_ops source_replay;

/*
 * Read @path; the modules of its maps are added to @modules, which must outlive the source. *@out is owned
 * by the caller: source_replay.free(). A bad line is logged with its number: -EINVAL; else -ENOMEM or
 * -errno, logged.
 */
int source_replay_open(struct source **out, const char *path, struct module_table *modules,
		       struct alloc_table *fns) __must_check;

/* Like source_replay_open(), from @in, which is at its beginning and stays open; @path is its name. */
int source_replay_read(struct source **out, FILE *in, const char *path, struct module_table *modules,
		       struct alloc_table *fns) __must_check;

/* Process number @i of the file with its mappings, NULL behind the last. Owned by the source. */
struct target *source_replay_target(struct source *s, size_t i);

/* Call @on_mark for markers, in the order of the file. */
typedef void (*source_replay_mark_fn)(void *ctx, u64 time_ns, const char *name);
void source_replay_set_marker(struct source *s, source_replay_mark_fn on_mark, void *ctx);

/* True when poll() has delivered everything. */
bool source_replay_is_done(const struct source *s);

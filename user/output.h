/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where reports go: standard output, and the files that --output names. */
#pragma once

#include <stdio.h>
#include <sys/types.h>

#include "user/lib/types.h"

struct ask_format;
struct options;
struct outputs;
struct report;

/*
 * Prepare the outputs of @o, or text on @standard where it names none. Everything that can be wrong with a
 * name is found now, before anything is attached: unknown ending, folder that is missing or not writable,
 * file that exists without --force. The folders stay open: a later change of directory does no harm.
 * @o is borrowed for the life of *@out. Returns 0, or -errno after one line on stderr.
 */
int outputs_new(struct outputs **out, const struct options *o, FILE *standard) __must_check;

/* The exit status for outputs_new()'s error: a command line that cannot work, or no memory. */
int outputs_status(int err);

/* Only one: reports to @stream in the format of @name ("-.json"). *@out is owned by the caller. 0 or -ENOMEM. */
int outputs_new_stream(struct outputs **out, const struct options *o, FILE *stream,
		       const char *name) __must_check;
void outputs_free(struct outputs *outs);

/*
 * Write @r to all outputs, each file whole or not at all: a name that is there is complete. Sets its options
 * for each of them. A file of an earlier report of this run is replaced where the name has neither %n nor %t.
 * The first failure of an output is logged; the other outputs are still written. Blocks on disk I/O.
 * Returns 0 or the first -errno.
 */
int outputs_write(struct outputs *outs, const struct report *r) __must_check;
/* The same for session_show(): @outs is a struct outputs. */
int outputs_write_to(void *outs, const struct report *r) __must_check;

/*
 * The same with reports on process @pid that another heaptap has written: outputs_describe() says what is wanted of
 * it; then file @fds[i], which is read from its start, goes to output i.
 */
size_t outputs_describe(const struct outputs *outs, struct ask_format *formats, size_t max);
int outputs_copy(struct outputs *outs, pid_t pid, const int *fds, size_t nr) __must_check;

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where reports go: standard output, and the files that --output names. */
#pragma once

#include <stdio.h>

#include "user/report/format.h"
#include "user/report/report.h"

struct outputs;

enum output_color { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER };

/* Options of outputs. Strings and lists are borrowed. */
struct output_options {
	const char *const *names; /* of --output */
	size_t nr_names;
	const struct report_format
		*format; /* of streams, and of files whose ending names none; NULL = text, and none */
	const struct report_format *annotations; /* of one output more, standard output; NULL = none */
	bool force;				 /* overwrite existing files */
	u32 color;				 /* enum output_color */
	u64 keep;		      /* of names with %n or %t, the files of so many reports; 0 = all */
	bool is_numbered;	      /* each report says its number and the time of day */
	struct report_options report; /* width and color are set for each output */
};

/* How reports to @out (NULL: a file, never coloured) look: as the terminal and the environment say. */
struct report_options output_look(const struct output_options *o, FILE *out);

/*
 * Prepare the outputs of @o, or one on @standard if it names none; and its annotations. All mistakes in a name are
 * found now, before anything is attached: an unknown ending, a directory that is missing or not writable, a file that
 * exists without --force. The directories stay open, so a later chdir() does no harm. @o is borrowed for the life of
 * *@out.
 * Returns 0, or -errno after one line on stderr.
 */
int outputs_new(struct outputs **out, const struct output_options *o, FILE *standard) __must_check;

/* The exit status for an error of outputs_new(). */
int outputs_status(int err);

/* One output: reports to @stream in the format of @name ("-.json"). *@out is owned by the caller. 0 or -ENOMEM. */
int outputs_new_stream(struct outputs **out, const struct output_options *o, FILE *stream,
		       const char *name) __must_check;
void outputs_free(struct outputs *outs);

/*
 * Write @r to all outputs, each file whole or not at all: a name that is there is complete. Sets its options
 * for each of them. A file of an earlier report of this run is replaced where the name has neither %n nor %t.
 * The first failure of an output is logged; the other outputs are still written. Blocks on disk I/O.
 * Returns 0 or the first -errno.
 */
int outputs_write(struct outputs *outs, const struct report *r) __must_check;
/* outputs_write() for session_show(); @outs is a struct outputs. */
int outputs_write_to(void *outs, const struct report *r) __must_check;

/* The first @max directories that files are made in, borrowed. Returns how many there are. */
size_t outputs_directories(const struct outputs *outs, int *dirs, size_t max);

/* Format and look of one output. */
struct output_format {
	const char *name; /* of a row of report_formats */
	u32 width;	  /* struct report_options */
	bool color, is_terminal;
};

/* The first @max formats, one for each output. Returns how many outputs there are. */
size_t outputs_describe(const struct outputs *outs, struct output_format *formats, size_t max);

/*
 * Like outputs_write(), with reports on process @pid that another heaptap has written as outputs_describe() says: the
 * file @fds[i], which is read from its start, goes to output i.
 */
int outputs_copy(struct outputs *outs, pid_t pid, const int *fds, size_t nr) __must_check;

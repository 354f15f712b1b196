/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names the frames of a saved JSON report, which was made where the names were not to be had. */
#pragma once

#include <stdio.h>

#include "user/lib/types.h"

struct symbolizer_options;

/* Counts of a report that was named. */
struct saved_named {
	size_t nr_frames, nr_unnamed; /* each frame once */
	size_t nr_modules;
};

/*
 * Write the JSON report @text of @len bytes to @out with the names that @options lead to: its tables are new, each
 * caller has its place, and all else is as it was. A file has to have the build ID that the report says, or names are
 * not taken from it. May block on disk I/O. 0; -ENOMEM; or -EBADMSG as saved_read(), with *@why and *@at.
 */
int saved_name(FILE *out, const char *text, size_t len, const struct symbolizer_options *options,
	       struct saved_named *named, const char **why, size_t *at) __must_check;

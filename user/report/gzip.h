/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes a file compressed by gzip. Equal input makes equal files: no time and no name are in them. */
#pragma once

#include <stdio.h>

#include "user/lib/types.h"

struct gzip;

/*
 * Compress to @out, which is borrowed. @is_fast: take a third of the time, and some more room, for files of many
 * million lines. *@zip is owned by the caller: gzip_end(). 0 or -ENOMEM.
 */
int gzip_new(struct gzip **zip, FILE *out, bool is_fast) __must_check;

/* Where to print what is to be compressed. Do not close it. */
FILE *gzip_file(struct gzip *z);

/* Write the rest, flush and free @z. 0, or -errno of the first write that failed. NULL is fine. */
int gzip_end(struct gzip *z) __must_check;

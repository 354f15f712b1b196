/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes compressed files. Equal input makes equal files: no time and no name are in them. */
#pragma once

#include <stdio.h>

#include "user/lib/types.h"

struct compressed;

enum compression {
	COMPRESSION_GZIP,
	COMPRESSION_GZIP_FAST, /* a third of the time and some more room, for files of many million lines */
	COMPRESSION_ZSTD,      /* a third of gzip's time for large files */
};

/* Compress to @out, which is borrowed. *@made is owned by the caller: compressed_end(). 0 or -ENOMEM. */
int compressed_new(struct compressed **made, FILE *out, enum compression how) __must_check;

/* Where to print what is to be compressed. Do not close it. */
FILE *compressed_file(struct compressed *c);

/* Write the rest, flush and free @c. 0, or -errno of the first write that failed. NULL is fine. */
int compressed_end(struct compressed *c) __must_check;

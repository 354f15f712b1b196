/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A stream that compresses by zstd what is printed to it, as user/report/gzip.h by gzip. */
#pragma once

#include <stdio.h>

#include "user/lib/types.h"

struct zstd_out;

/* Compress to @out, which is borrowed. *@zip is owned by the caller: zstd_out_end(). 0 or -ENOMEM. */
int zstd_out_new(struct zstd_out **zip, FILE *out) __must_check;

/* Print here; borrowed. */
FILE *zstd_out_file(struct zstd_out *z);

/* Write what waits, flush the file, and free @z (NULL is fine). 0, or -errno of the first write that failed. */
int zstd_out_end(struct zstd_out *z) __must_check;

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A stream that compresses what is printed to it. */
#include "user/report/gzip.h"

#include <errno.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <zlib.h>

#include "user/lib/flush.h"
#include "user/report/report.h"

enum { GZIP_WINDOW = 15 + 16 /* the largest window, and the head of a gzip file */, CHUNK = 32768 };

struct gzip {
	FILE *file; /* owned; what is printed here comes to write_plain() */
	FILE *out;  /* borrowed */
	z_stream stream;
	int err; /* of the first write that failed */
	u8 buf[CHUNK];
};

/* Give what waits to zlib, and what that makes to the file. */
static void pump(struct gzip *z, int flush)
{
	int result = Z_OK;

	do {
		size_t len;

		z->stream.next_out = z->buf;
		z->stream.avail_out = sizeof(z->buf);
		result = deflate(&z->stream, flush);
		len = sizeof(z->buf) - z->stream.avail_out;
		if (fwrite(z->buf, 1, len, z->out) != len)
			z->err = errno ? -errno : -EIO;
	} while (!z->err && (z->stream.avail_in || (flush == Z_FINISH && result == Z_OK)));
}

static ssize_t write_plain(void *cookie, const char *data, size_t len)
{
	struct gzip *z = cookie;

	z->stream.next_in = (u8 *)data;
	z->stream.avail_in = (uInt)len;
	if (!z->err)
		pump(z, Z_NO_FLUSH);
	/* The first error is kept: let the rest pass. */
	return (ssize_t)len;
}

int gzip_new(struct gzip **zip, FILE *out, bool is_fast)
{
	int level = is_fast ? Z_BEST_SPEED : Z_DEFAULT_COMPRESSION;
	struct gzip *z = calloc(1, sizeof(*z));

	if (!z)
		return -ENOMEM;
	z->out = out;
	if (deflateInit2(&z->stream, level, Z_DEFLATED, GZIP_WINDOW, 8, Z_DEFAULT_STRATEGY))
		goto undo_new;
	z->file = fopencookie(z, "w", (cookie_io_functions_t){ .write = write_plain });
	if (!z->file)
		goto undo_init;
	__fsetlocking(z->file, FSETLOCKING_BYCALLER);
	*zip = z;
	return 0;

undo_init:
	deflateEnd(&z->stream);
undo_new:
	free(z);
	return -ENOMEM;
}

FILE *gzip_file(struct gzip *z)
{
	return z->file;
}

int gzip_end(struct gzip *z)
{
	int err;

	if (!z)
		return 0;
	if (fclose(z->file) && !z->err)
		z->err = -ENOMEM;
	if (!z->err)
		pump(z, Z_FINISH);
	deflateEnd(&z->stream);
	err = z->err ? z->err : flush_stream(z->out);
	free(z);
	return err;
}

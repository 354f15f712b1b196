/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A stream that compresses by zstd what is printed to it: of large files at a third of gzip's cost. */
#include "user/report/zstd_out.h"

#include <errno.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <zstd.h>

#include "user/lib/flush.h"

enum { LEVEL = 1, CHUNK = 1 << 16 };

struct zstd_out {
	FILE *file; /* owned; what is printed here comes to write_plain() */
	FILE *out;  /* borrowed */
	ZSTD_CStream *stream;
	int err; /* of the first write that failed */
	u8 buf[CHUNK];
};

/* Give @in to zstd, and what that makes to the file. */
static void pump(struct zstd_out *z, ZSTD_inBuffer *in, ZSTD_EndDirective end)
{
	size_t left;

	do {
		ZSTD_outBuffer made = { z->buf, CHUNK, 0 };

		left = ZSTD_compressStream2(z->stream, &made, in, end);
		if (ZSTD_isError(left))
			z->err = -ENOMEM;
		else if (fwrite(z->buf, 1, made.pos, z->out) != made.pos)
			z->err = errno ? -errno : -EIO;
	} while (!z->err && (in->pos < in->size || (end == ZSTD_e_end && left)));
}

static ssize_t write_plain(void *cookie, const char *data, size_t len)
{
	struct zstd_out *z = cookie;

	if (!z->err)
		pump(z, &(ZSTD_inBuffer){ data, len, 0 }, ZSTD_e_continue);
	/* The first error is kept: let the rest pass. */
	return (ssize_t)len;
}

int zstd_out_new(struct zstd_out **zip, FILE *out)
{
	struct zstd_out *z = calloc(1, sizeof(*z));

	if (!z)
		return -ENOMEM;
	z->out = out;
	z->stream = ZSTD_createCStream();
	if (!z->stream)
		goto undo_new;
	if (ZSTD_isError(ZSTD_CCtx_setParameter(z->stream, ZSTD_c_compressionLevel, LEVEL)) ||
	    ZSTD_isError(ZSTD_CCtx_setParameter(z->stream, ZSTD_c_checksumFlag, 1)))
		goto undo_stream;
	z->file = fopencookie(z, "w", (cookie_io_functions_t){ .write = write_plain });
	if (!z->file)
		goto undo_stream;
	__fsetlocking(z->file, FSETLOCKING_BYCALLER);
	*zip = z;
	return 0;

undo_stream:
	ZSTD_freeCStream(z->stream);
undo_new:
	free(z);
	return -ENOMEM;
}

FILE *zstd_out_file(struct zstd_out *z)
{
	return z->file;
}

int zstd_out_end(struct zstd_out *z)
{
	int err;

	if (!z)
		return 0;
	if (fclose(z->file) && !z->err)
		z->err = -ENOMEM;
	if (!z->err)
		pump(z, &(ZSTD_inBuffer){ NULL, 0, 0 }, ZSTD_e_end);
	ZSTD_freeCStream(z->stream);
	err = z->err ? z->err : flush_stream(z->out);
	free(z);
	return err;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A stream that compresses what is printed to it. */
#include "user/report/compressed.h"

#include <errno.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <zlib.h>
#include <zstd.h>

#include "user/lib/flush.h"

enum {
	GZIP_WINDOW = 15 + 16 /* the largest window, and the head of a gzip file */,
	ZSTD_LEVEL = 1,
	CHUNK = 1 << 16
};

struct compressed {
	const struct compressor *way;
	FILE *file; /* owned; what is printed here comes to compressed_write_plain() */
	FILE *out;  /* borrowed */
	z_stream gzip;
	ZSTD_CStream *zstd;
	int err; /* of the first write that failed */
	u8 buf[CHUNK];
};

/* One way to compress. */
struct compressor {
	int (*init)(struct compressed *c, int level);
	/* Give @len bytes to the library, and what that makes to the file; at the end, all that it has kept. */
	void (*pump)(struct compressed *c, const void *data, size_t len, bool is_end);
	void (*fini)(struct compressed *c);
	int level;
};

static void compressed_put(struct compressed *c, size_t len)
{
	if (fwrite(c->buf, 1, len, c->out) != len)
		c->err = errno ? -errno : -EIO;
}

static int gzip_init(struct compressed *c, int level)
{
	return deflateInit2(&c->gzip, level, Z_DEFLATED, GZIP_WINDOW, 8, Z_DEFAULT_STRATEGY) ? -ENOMEM : 0;
}

static void gzip_pump(struct compressed *c, const void *data, size_t len, bool is_end)
{
	int result;

	c->gzip.next_in = (u8 *)data;
	c->gzip.avail_in = (uInt)len;
	do {
		c->gzip.next_out = c->buf;
		c->gzip.avail_out = CHUNK;
		result = deflate(&c->gzip, is_end ? Z_FINISH : Z_NO_FLUSH);
		compressed_put(c, CHUNK - c->gzip.avail_out);
	} while (!c->err && (c->gzip.avail_in || (is_end && result == Z_OK)));
}

static void gzip_fini(struct compressed *c)
{
	deflateEnd(&c->gzip);
}

static int zstd_init(struct compressed *c, int level)
{
	c->zstd = ZSTD_createCStream();
	if (c->zstd && !ZSTD_isError(ZSTD_CCtx_setParameter(c->zstd, ZSTD_c_compressionLevel, level)) &&
	    !ZSTD_isError(ZSTD_CCtx_setParameter(c->zstd, ZSTD_c_checksumFlag, 1)))
		return 0;
	ZSTD_freeCStream(c->zstd);
	return -ENOMEM;
}

static void zstd_pump(struct compressed *c, const void *data, size_t len, bool is_end)
{
	ZSTD_inBuffer in = { data, len, 0 };
	size_t left;

	do {
		ZSTD_outBuffer made = { c->buf, CHUNK, 0 };

		left = ZSTD_compressStream2(c->zstd, &made, &in, is_end ? ZSTD_e_end : ZSTD_e_continue);
		if (ZSTD_isError(left))
			c->err = -ENOMEM;
		else
			compressed_put(c, made.pos);
	} while (!c->err && (in.pos < in.size || (is_end && left)));
}

static void zstd_fini(struct compressed *c)
{
	ZSTD_freeCStream(c->zstd);
}

static const struct compressor compressors[] = {
	[COMPRESSION_GZIP] = { gzip_init, gzip_pump, gzip_fini, Z_DEFAULT_COMPRESSION },
	[COMPRESSION_GZIP_FAST] = { gzip_init, gzip_pump, gzip_fini, Z_BEST_SPEED },
	[COMPRESSION_ZSTD] = { zstd_init, zstd_pump, zstd_fini, ZSTD_LEVEL },
};

static ssize_t compressed_write_plain(void *cookie, const char *data, size_t len)
{
	struct compressed *c = cookie;

	/* The first error is kept: let the rest pass. */
	if (!c->err)
		c->way->pump(c, data, len, false);
	return (ssize_t)len;
}

int compressed_new(struct compressed **made, FILE *out, enum compression how)
{
	struct compressed *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->out = out;
	c->way = &compressors[how];
	if (c->way->init(c, c->way->level))
		goto undo_new;
	c->file = fopencookie(c, "w", (cookie_io_functions_t){ .write = compressed_write_plain });
	if (!c->file)
		goto undo_init;
	__fsetlocking(c->file, FSETLOCKING_BYCALLER);
	*made = c;
	return 0;

undo_init:
	c->way->fini(c);
undo_new:
	free(c);
	return -ENOMEM;
}

FILE *compressed_file(struct compressed *c)
{
	return c->file;
}

int compressed_end(struct compressed *c)
{
	int err;

	if (!c)
		return 0;
	if (fclose(c->file) && !c->err)
		c->err = -ENOMEM;
	if (!c->err)
		c->way->pump(c, NULL, 0, true);
	c->way->fini(c);
	err = c->err ? c->err : flush_stream(c->out);
	free(c);
	return err;
}

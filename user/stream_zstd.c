/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Chunks of a stream, packed by zstd. */
#include "user/stream_zstd.h"

#include <zstd.h>

enum { LEVEL = 2 };

static size_t pack(void *out, size_t room, const void *data, size_t len)
{
	size_t ret = ZSTD_compress(out, room, data, len, LEVEL);

	return ZSTD_isError(ret) ? 0 : ret;
}

/* Never writes more than @room, whatever the frame says of itself. */
static size_t unpack(void *out, size_t room, const void *data, size_t len)
{
	size_t ret = ZSTD_decompress(out, room, data, len);

	return ZSTD_isError(ret) ? 0 : ret;
}

const struct stream_codec stream_zstd = { pack, unpack };

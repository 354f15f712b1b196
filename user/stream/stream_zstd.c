/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Pack and unpack the chunks of a stream by zstd. */
#include "user/stream/stream_zstd.h"

#include <errno.h>
#include <zstd.h>
#include <zstd_errors.h>

enum { LEVEL = 2 };

static size_t stream_zstd_pack(void *out, size_t room, const void *data, size_t len)
{
	size_t ret = ZSTD_compress(out, room, data, len, LEVEL);

	return ZSTD_isError(ret) ? 0 : ret;
}

/* Writes at most @room bytes, whatever size the frame announces. */
static size_t stream_zstd_unpack(void *out, size_t room, const void *data, size_t len)
{
	size_t ret = ZSTD_decompress(out, room, data, len);

	if (ZSTD_getErrorCode(ret) == ZSTD_error_memory_allocation)
		errno = ENOMEM;
	return ZSTD_isError(ret) ? 0 : ret;
}

const struct stream_codec stream_zstd = { stream_zstd_pack, stream_zstd_unpack };

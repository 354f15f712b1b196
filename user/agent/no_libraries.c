/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Stand-in for zlib and zstd in the agent: nothing is compressed or decompressed. */
#include <errno.h>

#include "user/names/decompress.h"
#include "user/stream/stream_zstd.h"

int decompress(u8 *to, size_t size, const u8 *from, size_t from_size, u32 how)
{
	(void)to;
	(void)size;
	(void)from;
	(void)from_size;
	(void)how;
	return -ENOTSUP;
}

/* Returns 0: the chunk is not packed, or cannot be unpacked. */
static size_t nothing(void *out, size_t room, const void *data, size_t len)
{
	(void)out;
	(void)room;
	(void)data;
	(void)len;
	return 0;
}

const struct stream_codec stream_zstd = { nothing, nothing };

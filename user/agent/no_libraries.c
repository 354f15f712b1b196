/* SPDX-License-Identifier: GPL-2.0-or-later */
/* In the agent: nothing is decompressed, and nothing of what it sends is compressed. */
#include <errno.h>

#include "user/decompress.h"
#include "user/stream_zstd.h"

int decompress(u8 *to, size_t size, const u8 *from, size_t from_size, u32 how)
{
	(void)to;
	(void)size;
	(void)from;
	(void)from_size;
	(void)how;
	return -ENOTSUP;
}

/* Not packed, and not to be unpacked. */
static size_t nothing(void *out, size_t room, const void *data, size_t len)
{
	(void)out;
	(void)room;
	(void)data;
	(void)len;
	return 0;
}

const struct stream_codec stream_zstd = { nothing, nothing };

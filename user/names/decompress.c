/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Decompresses sections of ELF files. The agent has user/agent/no_libraries.c instead. */
#include "user/names/decompress.h"

#include <errno.h>
#include <zlib.h>
#include <zstd.h>

int decompress(u8 *to, size_t size, const u8 *from, size_t from_size, u32 how)
{
	uLongf done = size;

	if (how == ELFCOMPRESS_ZLIB)
		return uncompress(to, &done, from, from_size) == Z_OK && done == size ? 0 : -EIO;
	if (how == ELFCOMPRESS_ZSTD)
		return ZSTD_decompress(to, size, from, from_size) == size ? 0 : -EIO;
	return -ENOTSUP;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Any bytes as a stream, or as what is in one: with right lengths and checksums, or no search would get there. */
#pragma once

#include <string.h>

#include "user/lib/crc32c.h"
#include "user/lib/varint.h"
#include "user/stream/stream_format.h"
#include "user/stream/stream_split.h"
#include "user/stream/stream_zstd.h"

enum { MAX_INPUT = 1 << 16 };

/* A chunk of @len bytes behind the header at @out. */
static size_t seal(u8 *out, size_t stored, size_t raw, u32 number, u8 flags)
{
	memset(out, 0, STREAM_HEADER_LEN);
	le32_put(out + 4, (u32)stored);
	le32_put(out + 8, (u32)raw);
	le32_put(out + 12, number);
	out[16] = STREAM_CHUNK_RECORDS;
	out[17] = flags;
	le32_put(out, crc32c(0, out + 4, STREAM_HEADER_LEN - 4 + stored));
	return STREAM_HEADER_LEN + stored;
}

/* A beginning that introduces one of each kind, so that not all inputs must find out how. */
/* clang-format off */
static const u8 beginning[] = {
	0,
	STREAM_HELLO, 2, 1, 0, 0,
	STREAM_FUNCTION, 12, 1, 0, 0, 4, 'n', 'a', 'm', 'e', 3, 'x', 'y', 'z', 0,
	STREAM_FUNCTION, 6, 2, 3, 0, 1, 'f', 0, 0,
	STREAM_CONTEXT, 3, 0, 5, 6, 0,
	STREAM_PROCESS, 1, 5, 0,
	STREAM_MODULE, 8, 1, 0, 1, 2, 0, 2, '/', 'a', 0,
	STREAM_MAPS, 3, 5, 1, 1, 0,
	STREAM_MAPPING, 5, 16, 99, 0, 0, 1, 0,
	STREAM_ALLOCATOR, 4, 5, 1, 1, 'g', 0,
	STREAM_STACK, 7, 5, 1, 0, 2, 0, 64, 4,
};
/* clang-format on */

static size_t begin(u8 *out)
{
	memcpy(out, STREAM_MAGIC, STREAM_MAGIC_LEN);
	le16_put(out + 8, STREAM_MAJOR);
	le16_put(out + 10, STREAM_MINOR);
	le32_put(out + 12, crc32c(0, out, 12));
	memcpy(out + STREAM_PREAMBLE_LEN + STREAM_HEADER_LEN, beginning, sizeof(beginning));
	return STREAM_PREAMBLE_LEN +
	       seal(out + STREAM_PREAMBLE_LEN, sizeof(beginning), sizeof(beginning), 0, 0);
}

/* Shape the input as its first byte says. */
__attribute__((unused)) static size_t shape(u8 *out, u8 how, const u8 *data, size_t size)
{
	u8 columns[STREAM_SPLIT_HEAD + MAX_INPUT];
	size_t nr, at = STREAM_SPLIT_HEAD;

	if (how % 4 == 0) {
		memcpy(out, data, size);
		return size;
	}
	nr = begin(out);
	if (how % 4 == 1) {
		memcpy(out + nr + STREAM_HEADER_LEN, data, size);
		return nr + seal(out + nr, size, size, 1, 0);
	}
	if (how % 4 == 2) {
		memcpy(out + nr, data, size);
		return nr + size;
	}
	/* One byte for the length of each column, the rest is ops. */
	for (u32 i = 0; i < NR_STREAM_COLUMNS; i++) {
		u32 len = i && i < size ? data[i] : 0;

		if (len > (size > at - STREAM_SPLIT_HEAD ? size - (at - STREAM_SPLIT_HEAD) : 0))
			len = 0;
		if (!i)
			len = (u32)size / 2;
		memcpy(columns + at, data + at - STREAM_SPLIT_HEAD, len);
		le32_put(columns + 4 * i, len);
		at += len;
	}
	at = at < STREAM_SPLIT_HEAD + size ? at : STREAM_SPLIT_HEAD + size;
	size = stream_zstd.pack(out + nr + STREAM_HEADER_LEN, 2 * MAX_INPUT, columns, at);
	return nr + seal(out + nr, size, at - STREAM_SPLIT_HEAD, 1, STREAM_PACKED | STREAM_SPLIT);
}

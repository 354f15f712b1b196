/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Free chunks of glibc between two blocks. The pointers in them are glibc's own, not the program's. */
#include <string.h>

#include "user/scan/scan_regions.h"

/*
 * A chunk begins 16 bytes before its block. The second 8 bytes hold its size, which leads to the next chunk. Bit 0 of
 * the size says whether the chunk before is in use. If not, the last 8 bytes of that chunk hold its size again. Free
 * chunks are believed only where the sizes lead from one known block exactly to the next.
 */

enum { HEADER = 16, MIN_CHUNK = 32, SIZE_FLAGS = 15 };

static u64 scan_chunks_load(const u8 *p)
{
	u64 value;

	memcpy(&value, p, sizeof(value));
	return value;
}

/* Size of the chunk at @p, 0 if no chunk can be there. */
static u64 chunk_size(const u8 *p, u64 room)
{
	u64 size = scan_chunks_load(p + 8) & ~(u64)SIZE_FLAGS;

	return size >= MIN_CHUNK && size <= room ? size : 0;
}

taddr_t chunk_end(taddr_t block, const u8 *p)
{
	u64 size = scan_chunks_load(p - 8) & ~(u64)SIZE_FLAGS;

	return size < MIN_CHUNK || size >> 47 || block % HEADER ? 0 : block - HEADER + size;
}

s32 chunk_find_free(taddr_t from, taddr_t to, const u8 *p, struct dead_range *free_ranges, u32 max)
{
	u64 len = to - from, at = 0;
	u32 nr = 0;

	if (from % HEADER || to < from)
		return -1;
	while (at < len) {
		u64 size = chunk_size(p + at, len - at);
		const u8 *next = p + at + size;

		if (!size)
			return -1;
		if (!(scan_chunks_load(next + 8) & 1) && scan_chunks_load(next) == size && nr < max)
			free_ranges[nr++] = (struct dead_range){ from + at + HEADER, from + at + size };
		at += size;
	}
	return (s32)nr;
}

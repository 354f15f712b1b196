/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Free chunks of glibc between two blocks: what it chains them by are no pointers of the program. */
#include <string.h>

#include "user/scan_regions.h"
#include "user/scan_state.h"

/*
 * Before each block lie 8 bytes with the size of its chunk, which begins 8 bytes before those. From chunk to chunk the
 * sizes lead on, and bit 0 of a size says whether the chunk before is in use; the last 8 bytes of one that is not hold
 * its size once more. What is free is believed only where the sizes lead from one known block exactly to the next.
 */

enum { HEADER = 16, MIN_CHUNK = 32, SIZE_FLAGS = 15 };

static u64 load(const u8 *p)
{
	u64 value;

	memcpy(&value, p, sizeof(value));
	return value;
}

/* Size of the chunk at @p, 0 if it cannot be one. */
static u64 chunk_size(const u8 *p, u64 room)
{
	u64 size = load(p + 8) & ~(u64)SIZE_FLAGS;

	return size >= MIN_CHUNK && size <= room ? size : 0;
}

taddr_t chunk_end(taddr_t block, const u8 *p)
{
	u64 size = load(p - 8) & ~(u64)SIZE_FLAGS;

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
		if (!(load(next + 8) & 1) && load(next) == size && nr < max)
			free_ranges[nr++] = (struct dead_range){ from + at + HEADER, from + at + size };
		at += size;
	}
	return (s32)nr;
}

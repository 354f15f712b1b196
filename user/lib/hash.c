/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Hashes bytes in four lanes at a time, for tables and for noticing damaged files. */
#include "user/lib/hash.h"

#include <string.h>

enum { LANES = 4 };

/* Odd numbers with well spread bits: from the golden ratio and other roots. */
static const u64 multiplier = 0x9e3779b97f4a7c15ULL, finisher = 0xd6e8feb86659fd93ULL;

/* The next @size bytes, at most 8, as a little-endian number. */
static u64 hash_word_at(const u8 *p, size_t size)
{
	u64 word = 0;

	memcpy(&word, p, size);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	word = __builtin_bswap64(word);
#endif
	return word;
}

static u64 hash_rotated(u64 x, int by)
{
	return x << by | x >> (64 - by);
}

static u64 hash_mixed(u64 h, u64 word)
{
	return hash_rotated((h ^ word) * multiplier, 29);
}

static u64 hash_finished(u64 h)
{
	h = (h ^ h >> 32) * finisher;
	h = (h ^ h >> 32) * finisher;
	return h ^ h >> 32;
}

u64 hash_bytes(const void *data, size_t size, u64 seed)
{
	const u8 *p = data, *end = p + size;
	u64 lanes[LANES], h = seed ^ size * finisher;

	for (int i = 0; i < LANES; i++)
		lanes[i] = h + i * multiplier;
	for (; (size_t)(end - p) >= sizeof(lanes); p += sizeof(lanes))
		for (int i = 0; i < LANES; i++)
			lanes[i] = hash_mixed(lanes[i], hash_word_at(p + i * sizeof(u64), sizeof(u64)));
	for (int i = 0; i < LANES; i++)
		h = hash_mixed(h, hash_finished(lanes[i]));
	for (; end - p >= (ptrdiff_t)sizeof(u64); p += sizeof(u64))
		h = hash_mixed(h, hash_word_at(p, sizeof(u64)));
	if (p < end)
		h = hash_mixed(h, hash_word_at(p, end - p));
	return hash_finished(h);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Every word of memory passes here, so that most are sorted out by a few instructions for four words at a time. */
#include "user/scan/scan_filter.h"

#include <string.h>

enum { GROUP = 64 }; /* words that are looked at without a branch */

/* The loop has only a comparison, and a store that does not depend on it. */
static u32 filter_each(const u8 *p, u32 from, u32 nr, const struct scan_filter *f, u16 *found)
{
	u32 nr_found = 0;

	for (u32 i = from; i < nr; i++) {
		u64 value;

		memcpy(&value, p + (size_t)8 * i, 8);
		found[nr_found] = (u16)i;
		nr_found += (value & f->mask) - f->lo < f->length;
	}
	return nr_found;
}

#ifdef __SSE2__
#include <emmintrin.h>

/* A filter for vectors. */
struct wide {
	__m128i mask, lo, sign;
	__m128i high,
		low; /* the largest halves of a distance from lo that are let through, less than 0 as if signed */
};

static struct wide scan_filter_widen(const struct scan_filter *f)
{
	u64 last = f->length - 1;
	u32 sign = 1U << 31, low = last >> 32 ? UINT32_MAX : (u32)last;

	return (struct wide){ .mask = _mm_set1_epi64x((long long)f->mask),
			      .lo = _mm_set1_epi64x((long long)f->lo),
			      .sign = _mm_set1_epi32((int)sign),
			      .high = _mm_set1_epi32((int)((u32)(last >> 32) ^ sign)),
			      .low = _mm_set1_epi32((int)(low ^ sign)) };
}

static inline __m128i scan_filter_distances(const u8 *p, const struct wide *w)
{
	__m128i values = _mm_loadu_si128((const __m128i *)p);

	return _mm_xor_si128(_mm_sub_epi64(_mm_and_si128(values, w->mask), w->lo), w->sign);
}

/* A bit for each of GROUP words that may pass. Where length has more than 32 bits, its low half is not looked at. */
static inline u64 pass_group(const u8 *p, const struct wide *w)
{
	u64 fail = 0;

	for (u32 i = 0; i < GROUP; i += 4) {
		__m128 a = _mm_castsi128_ps(scan_filter_distances(p + (size_t)8 * i, w));
		__m128 b = _mm_castsi128_ps(scan_filter_distances(p + (size_t)8 * i + 16, w));
		__m128i low = _mm_castps_si128(_mm_shuffle_ps(a, b, _MM_SHUFFLE(2, 0, 2, 0)));
		__m128i high = _mm_castps_si128(_mm_shuffle_ps(a, b, _MM_SHUFFLE(3, 1, 3, 1)));
		__m128i is_above = _mm_or_si128(_mm_cmpgt_epi32(high, w->high), _mm_cmpgt_epi32(low, w->low));

		fail |= (u64)_mm_movemask_ps(_mm_castsi128_ps(is_above)) << i;
	}
	return ~fail;
}

u32 scan_filter(const u8 *p, u32 nr, const struct scan_filter *f, u16 *found)
{
	const struct wide w = scan_filter_widen(f);
	u32 nr_found = 0, at = 0;

	for (; nr - at >= GROUP; at += GROUP) {
		for (u64 pass = pass_group(p + (size_t)8 * at, &w); pass; pass &= pass - 1) {
			u32 i = at + (u32)__builtin_ctzll(pass);
			u64 value;

			memcpy(&value, p + (size_t)8 * i, 8);
			found[nr_found] = (u16)i;
			nr_found += (value & f->mask) - f->lo < f->length;
		}
	}
	return nr_found + filter_each(p, at, nr, f, found + nr_found);
}
#else
u32 scan_filter(const u8 *p, u32 nr, const struct scan_filter *f, u16 *found)
{
	return filter_each(p, 0, nr, f, found);
}
#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Numbers as bytes in streams: little-endian numbers, and varints of seven bits per byte. */
#pragma once

#include "user/lib/types.h"

enum { VARINT_MAX = 10 }; /* bytes */

/* Write @value at @out, which has room for VARINT_MAX bytes. Returns the first byte behind it. */
static inline u8 *varint_put(u8 *out, u64 value)
{
	while (value >= 0x80) {
		*out++ = (u8)(value | 0x80);
		value >>= 7;
	}
	*out++ = (u8)value;
	return out;
}

/* varint_get() for numbers of more than one byte. */
static inline const u8 *varint_get_long(const u8 *p, const u8 *end, u64 *value)
{
	u64 v = 0;

	for (u32 shift = 0; p && p < end && shift < 64; shift += 7) {
		u8 byte = *p++;

		/* Bit 64 and above. */
		if (shift == 63 && byte > 1)
			return NULL;
		v |= (u64)(byte & 0x7f) << shift;
		if (byte < 0x80) {
			*value = v;
			return p;
		}
	}
	return NULL;
}

/*
 * Read a varint that lies before @end into *@value. Returns the first byte behind it; NULL if @p is NULL, it is
 * cut off or does not fit into 64 bits.
 */
static inline const u8 *varint_get(const u8 *p, const u8 *end, u64 *value)
{
	if (p && p < end && *p < 0x80) {
		*value = *p;
		return p + 1;
	}
	return varint_get_long(p, end, value);
}

static inline u32 varint_len(u64 value)
{
	return value < 0x80 ? 1 : (70 - (u32)__builtin_clzll(value)) / 7;
}

/* Signed numbers as unsigned ones, so that small numbers stay small: 0, -1, 1, -2. */
static inline u64 to_zigzag(u64 value)
{
	return value << 1 ^ (u64)((s64)value >> 63);
}

static inline u64 from_zigzag(u64 value)
{
	return value >> 1 ^ (0 - (value & 1));
}

static inline void le32_put(u8 *out, u32 value)
{
	for (u32 i = 0; i < 4; i++)
		out[i] = (u8)(value >> 8 * i);
}

static inline u32 le32_get(const u8 *p)
{
	return (u32)p[0] | (u32)p[1] << 8 | (u32)p[2] << 16 | (u32)p[3] << 24;
}

static inline void le16_put(u8 *out, u16 value)
{
	out[0] = (u8)value;
	out[1] = (u8)(value >> 8);
}

static inline u16 le16_get(const u8 *p)
{
	return (u16)(p[0] | p[1] << 8);
}

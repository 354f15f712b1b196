/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Numbers as digits without printf, for files of millions of lines. */
#pragma once

#include <string.h>

#include "user/lib/types.h"

enum { DIGITS_MAX = 20 }; /* of a u64; the hexadecimal form with its prefix is shorter */

/* Write @n as decimal digits to @out, without an end. Returns their number, at most DIGITS_MAX. */
static inline size_t digits_u64(char *out, u64 n)
{
	char text[DIGITS_MAX], *at = text + sizeof(text);
	size_t len;

	do {
		*--at = (char)('0' + n % 10);
		n /= 10;
	} while (n);
	len = (size_t)(text + sizeof(text) - at);
	memcpy(out, at, len);
	return len;
}

/* Write @n as "1f" to @out, without an end. Returns the number of characters, at most DIGITS_MAX. */
static inline size_t digits_bare_hex(char *out, u64 n)
{
	int nr = n ? (67 - __builtin_clzll(n)) / 4 : 1;

	for (int i = nr; i--; n >>= 4)
		out[i] = "0123456789abcdef"[n & 15];
	return (size_t)nr;
}

/* Read digits as digits_bare_hex() writes them. Returns their end; NULL without any, or if they are too many. */
static inline const char *digits_get_bare_hex(const char *text, const char *end, u64 *n)
{
	const char *at = text;

	for (*n = 0; at < end; at++) {
		u32 digit = (u32)*at - '0' < 10 ? (u32)*at - '0' : (u32)*at - 'a' + 10;

		if (digit > 15 || (digit >= 10 && *at < 'a'))
			break;
		*n = *n << 4 | digit;
	}
	return at == text || at - text > 16 ? NULL : at;
}

/* Write @n as "0x1f" to @out, without an end. Returns the number of characters, at most DIGITS_MAX. */
static inline size_t digits_hex(char *out, u64 n)
{
	out[0] = '0';
	out[1] = 'x';
	return 2 + digits_bare_hex(out + 2, n);
}

/* Write @bytes as "00ff..." to @out, which has room for two characters each and the end. */
static inline void digits_bytes(char *out, const u8 *bytes, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		out[2 * i] = "0123456789abcdef"[bytes[i] >> 4];
		out[2 * i + 1] = "0123456789abcdef"[bytes[i] & 15];
	}
	out[2 * nr] = '\0';
}

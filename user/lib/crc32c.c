/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The checksum of streams, eight bytes at a time by tables. */
#include "user/lib/crc32c.h"

enum { NR_SLICES = 8 };

static const u32 POLYNOMIAL = 0x82f63b78; /* lowest bit first */

/* tables[k][b]: the effect of byte b on the checksum k bytes later. Filled before main(), constant from then on. */
static u32 tables[NR_SLICES][256];

static void __attribute__((constructor)) fill_tables(void)
{
	for (u32 b = 0; b < 256; b++) {
		u32 crc = b;

		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? POLYNOMIAL : 0);
		tables[0][b] = crc;
	}
	for (u32 k = 1; k < NR_SLICES; k++)
		for (u32 b = 0; b < 256; b++)
			tables[k][b] = tables[k - 1][b] >> 8 ^ tables[0][tables[k - 1][b] & 0xff];
}

static u32 take_eight(u32 crc, const u8 *p)
{
	u32 low = crc ^ ((u32)p[0] | (u32)p[1] << 8 | (u32)p[2] << 16 | (u32)p[3] << 24);

	return tables[7][low & 0xff] ^ tables[6][low >> 8 & 0xff] ^ tables[5][low >> 16 & 0xff] ^
	       tables[4][low >> 24] ^ tables[3][p[4]] ^ tables[2][p[5]] ^ tables[1][p[6]] ^ tables[0][p[7]];
}

u32 crc32c(u32 crc, const void *data, size_t len)
{
	const u8 *p = data;

	crc = ~crc;
	for (; len >= NR_SLICES; len -= NR_SLICES, p += NR_SLICES)
		crc = take_eight(crc, p);
	while (len--)
		crc = crc >> 8 ^ tables[0][(crc ^ *p++) & 0xff];
	return ~crc;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads groups of musl's malloc, and the blocks in their slots. */
#include <errno.h>

#include "user/census/musl.h"

/*
 * A description: the previous and the next one of a list, the address of the group, two masks of 32 bits (slots that
 * were never used, slots that were freed), and a word of fields: number of the last slot (5 bits), a flag, size class
 * (6 bits), pages of the mapping.
 *
 * Before a block lie 4 bytes: a flag, the number of the slot and a count of unused bytes at the end of the slot in 5
 * and 3 bits, the distance to the first slot in units of 16 bytes. With the flag this distance has 32 bits, and lies
 * before. A count of 5 says that the number of unused bytes lies at the end of the slot, 6 that a group lies in the
 * slot, 7 that the block begins later in the slot: so many units as the distance says.
 */

enum {
	HEADER = 8, /* bytes before a block that may have a meaning */
	END = 4,    /* of the slot, not for the program */
	COUNT_AT_END = 5,
	COUNT_GROUP = 6,
	COUNT_LATER = 7,
	PAGE = 4096,
	MAX_PAGES = 1 << 28,
};

static const u16 class_units[MUSL_NR_CLASSES] = {
	1,   2,	  3,   4,    5,	   6,	 7,    8,    9,	   10,	 12,   15,   18,   20,	 25,   31,
	36,  42,  50,  63,   72,   84,	 102,  127,  146,  170,	 204,  255,  292,  340,	 409,  511,
	584, 682, 818, 1023, 1169, 1364, 1637, 2047, 2340, 2730, 3276, 4095, 4680, 5460, 6552, 8191,
};

static u32 musl_group_half(const struct musl *m, const u8 *p, u32 bytes)
{
	u32 value = 0;

	for (u32 i = 0; i < bytes; i++)
		value = value << 8 | p[m->w->snap->is_big_endian ? i : bytes - 1 - i];
	return value;
}

u32 musl_descriptions(const struct musl *m, taddr_t area, u32 *header, u32 *size)
{
	u8 w = m->w->w, number[4];
	u32 nr;

	*header = w == 8 ? 24 : 16;
	*size = w == 8 ? 40 : 24;
	if (snapshot_fetch(m->w->snap, area + 8 + w, number, 4) != 0)
		return 0;
	nr = musl_group_half(m, number, 4);
	return nr <= (MUSL_AREA - *header) / *size ? nr : 0;
}

int musl_read_group(const struct musl *m, taddr_t meta, struct musl_group *out)
{
	u8 w = m->w->w, raw[5 * 8];
	u64 fields, pages, back;
	u32 class;

	if (snapshot_fetch(m->w->snap, meta, raw, 4U * w + 8) != 0)
		return -EINVAL;
	*out = (struct musl_group){ .meta = meta, .base = census_word_of(m->w, raw + 2 * w) };
	if (!out->base)
		return -ENOENT;
	fields = census_word_of(m->w, raw + 3 * w + 8);
	class = fields >> 6 & 63;
	pages = fields >> 12;
	out->nr = (u32)(fields & 31) + 1;
	out->free = musl_group_half(m, raw + 3 * w, 4) | musl_group_half(m, raw + 3 * w + 4, 4);
	if ((class >= MUSL_NR_CLASSES && class != MUSL_ALONE) || pages > MAX_PAGES || out->base % MUSL_UNIT ||
	    (class == MUSL_ALONE && (!pages || out->nr > 1)))
		return -EINVAL;
	out->mapped = pages * PAGE;
	out->is_alone = class == MUSL_ALONE;
	out->stride = out->nr == 1 && pages ? out->mapped - MUSL_UNIT
					    : (u64)MUSL_UNIT * class_units[class % MUSL_NR_CLASSES];
	/* The group names its description. */
	return census_words(m->w, out->base, &back, 1) && back == meta ? 0 : -EINVAL;
}

/* The words before the block at @addr. */
struct before {
	u8 number, count;
	u32 units; /* to the first slot */
};

static bool read_before(const struct musl *m, taddr_t addr, struct before *out)
{
	const u8 *p = census_window(m->w, addr - HEADER, HEADER);

	if (!p)
		return false;
	out->number = p[5] & 31;
	out->count = p[5] >> 5;
	out->units = musl_group_half(m, p + 6, 2);
	if (p[4])
		out->units = musl_group_half(m, p, 4);
	return p[4] <= 1;
}

/* Does a block of slot @i begin at @addr? */
static bool begins_at(const struct musl *m, const struct musl_group *g, u32 i, taddr_t addr, struct before *b)
{
	return read_before(m, addr, b) && b->number == i && b->count <= COUNT_GROUP &&
	       b->units == (addr - g->base - MUSL_UNIT) / MUSL_UNIT;
}

int musl_read_block(const struct musl *m, const struct musl_group *g, u32 i, taddr_t *addr, u64 *size)
{
	taddr_t start = g->base + MUSL_UNIT + i * g->stride, end = start + g->stride - END;
	struct before b;
	u64 unused;

	*addr = start;
	if (!read_before(m, start, &b))
		return -EINVAL;
	if (b.count == COUNT_LATER) {
		/* Of a distance of more than 16 bits, the rest is not stored. */
		for (*addr = start + b.units * MUSL_UNIT; *addr < end; *addr += MUSL_UNIT << 16)
			if (begins_at(m, g, i, *addr, &b))
				break;
	}
	if (*addr >= end || !begins_at(m, g, i, *addr, &b))
		return -EINVAL;
	if (b.count == COUNT_GROUP)
		return -ENOENT;
	unused = b.count;
	if (b.count == COUNT_AT_END) {
		const u8 *p = census_window(m->w, end - 4, 4);

		if (!p)
			return -EINVAL;
		unused = musl_group_half(m, p, 4);
		if (unused < COUNT_AT_END)
			return -EINVAL;
	}
	if (unused > end - *addr)
		return -EINVAL;
	*size = end - *addr - unused;
	return 0;
}

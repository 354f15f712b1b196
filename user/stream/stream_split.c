/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sort records into columns by their op bytes. No meaning of a field is needed. */
#include "user/stream/stream_split.h"

#include <string.h>

#include "user/lib/varint.h"

enum { NR_FULL_FIELDS = 7 };

/* The first byte behind the varint at @p, NULL if it is cut off. */
static inline const u8 *stream_split_skip(const u8 *p, const u8 *end)
{
	while (p < end && *p >= 0x80)
		p++;
	return p < end ? p + 1 : NULL;
}

/* The first byte behind a record with a body, or an event in full; @p is behind the op byte. NULL if it is cut off. */
static const u8 *skip_record(const u8 *p, const u8 *end, u8 op)
{
	u64 len = 0;

	if (op == OP_RECORD) {
		p = p < end ? varint_get(p + 1, end, &len) : NULL;
		return p && len <= (size_t)(end - p) ? p + len : NULL;
	}
	p = end - p > 2 ? p + 2 : NULL;
	for (u32 i = 0; p && i < NR_FULL_FIELDS + (u32)(op == OP_SAMPLED); i++)
		p = stream_split_skip(p, end);
	return p;
}

static bool stream_split_is_short(u8 op)
{
	return (op & 7) && (op & 7) < OP_SAMPLED;
}

/* Columns of the fields that flags announce, in their order behind the address. */
static const struct {
	u8 flag;
	u8 column;
} rest[] = {
	{ OP_STACK, STREAM_COLUMN_STACKS },
	{ OP_FN, STREAM_COLUMN_FNS },
	{ OP_SIZE, STREAM_COLUMN_SIZES },
};

/* Copy one varint from @from to @to, and advance both. False if it is cut off. */
static inline bool stream_split_move(u8 **to, const u8 **from, const u8 *end)
{
	const u8 *p = *from;
	u8 *out = *to;

	do {
		if (p == end)
			return false;
		*out++ = *p;
	} while (*p++ >= 0x80);
	*from = p;
	*to = out;
	return true;
}

/* Sort one short event; its op byte is read already. False if it is cut off. */
static bool split_short(u8 *to[NR_STREAM_COLUMNS], const u8 **p, const u8 *end, u8 op)
{
	if (!stream_split_move(&to[STREAM_COLUMN_TIMES], p, end))
		return false;
	if (op & OP_THREAD && !stream_split_move(&to[STREAM_COLUMN_CONTEXTS], p, end))
		return false;
	if (!stream_split_move(&to[stream_addr_column(op)], p, end))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(rest); i++)
		if (op & rest[i].flag && !stream_split_move(&to[rest[i].column], p, end))
			return false;
	return true;
}

size_t stream_split(u8 *out, u8 *work, const u8 *in, size_t len)
{
	const u8 *p = in, *end = in + len;
	u8 *to[NR_STREAM_COLUMNS];
	u8 *next = out + STREAM_SPLIT_HEAD;

	for (u32 i = 0; i < NR_STREAM_COLUMNS; i++)
		to[i] = work + i * len;
	while (p < end) {
		u8 op = *p++;
		const u8 *start = p;

		*to[STREAM_COLUMN_OPS]++ = op;
		if (stream_split_is_short(op)) {
			if (!split_short(to, &p, end, op))
				return 0;
			continue;
		}
		p = skip_record(p, end, op & 7);
		if (!p)
			return 0;
		memcpy(to[STREAM_COLUMN_RECORDS], start, (size_t)(p - start));
		to[STREAM_COLUMN_RECORDS] += p - start;
	}
	for (u32 i = 0; i < NR_STREAM_COLUMNS; i++) {
		size_t n = (size_t)(to[i] - (work + i * len));

		le32_put(out + 4 * i, (u32)n);
		memcpy(next, work + i * len, n);
		next += n;
	}
	return (size_t)(next - out);
}

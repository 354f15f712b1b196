/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sort the fields of a chunk into columns before it is packed: similar bytes lie together and pack better. */
#pragma once

#include "user/stream/stream_format.h"

/*
 * Columns in this order: op bytes; times; contexts; stacks; functions; sizes; records with a body and events in full,
 * each without its op byte; then addresses, for each op of a short event those that are differences, then the recent
 * ones. The lengths of all of them come first, u32 each.
 */
enum {
	STREAM_COLUMN_OPS,
	STREAM_COLUMN_TIMES,
	STREAM_COLUMN_CONTEXTS,
	STREAM_COLUMN_STACKS,
	STREAM_COLUMN_FNS,
	STREAM_COLUMN_SIZES,
	STREAM_COLUMN_RECORDS,
	STREAM_COLUMN_ADDRS,
	NR_STREAM_COLUMNS = STREAM_COLUMN_ADDRS + 2 * (OP_REALLOC_END + 1),
	STREAM_SPLIT_HEAD = 4 * NR_STREAM_COLUMNS,
};

/*
 * Sort @len bytes of records at @in into @out, which has room for STREAM_SPLIT_HEAD more; @work has room for
 * NR_STREAM_COLUMNS * @len, of which little is touched. Returns the bytes written, 0 if they are not whole records.
 */
size_t stream_split(u8 *out, u8 *work, const u8 *in, size_t len);

/* The column for the address of a short event. */
static inline u32 stream_addr_column(u8 op)
{
	return STREAM_COLUMN_ADDRS + 2 * (u32)(op & 7) + (op & OP_RECENT ? 1 : 0);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a leak scan sends: each block against the one before. */
#include "user/wire_scan.h"

#include <errno.h>
#include <string.h>

enum { BLOCK_UNSURE = 1, BLOCK_PENDING = 2, MS = 1000000 };

void wire_put_block(struct wire_body *b, struct wire_scan_at *at, const struct heap_block *block)
{
	u64 time_ms = block->time_ns / MS;

	wire_put_varint(b, block->addr - at->addr);
	wire_put_varint(b, block->size << 2 | (block->is_unsure ? BLOCK_UNSURE : 0) |
				   (block->is_pending ? BLOCK_PENDING : 0));
	wire_put_signed(b, (s64)(time_ms - at->time_ms));
	at->addr = block->addr;
	at->time_ms = time_ms;
}

int wire_get_block(struct wire_view *v, struct wire_scan_at *at, struct heap_block *block)
{
	u64 distance = wire_get_varint(v), size = wire_get_varint(v);

	memset(block, 0, sizeof(*block));
	at->time_ms += (u64)wire_get_signed(v);
	if (v->is_bad || distance > UINT64_MAX - at->addr)
		return -EPROTO;
	at->addr += distance;
	block->addr = at->addr;
	block->size = size >> 2;
	block->is_unsure = size & BLOCK_UNSURE;
	block->is_pending = size & BLOCK_PENDING;
	block->time_ns = at->time_ms * MS;
	/* As the books have it. */
	return block->size >> 48 || block->addr >> 56 ? -EPROTO : 0;
}

void wire_put_verdict(struct wire_body *b, struct wire_scan_at *at, const struct scan_block_info *info)
{
	wire_put_varint(b, (info->addr - at->addr) << 3 | info->verdict);
	if (info->verdict == SCAN_INDIRECT)
		wire_put_signed(b, (s64)(info->leader - info->addr));
	at->addr = info->addr;
}

int wire_get_verdict(struct wire_view *v, struct wire_scan_at *at, struct scan_block_info *info)
{
	u64 word = wire_get_varint(v);

	memset(info, 0, sizeof(*info));
	info->verdict = word & 7;
	if (v->is_bad || info->verdict >= NR_SCAN_VERDICTS || word >> 3 > UINT64_MAX - at->addr)
		return -EPROTO;
	at->addr += word >> 3;
	info->addr = at->addr;
	if (info->verdict == SCAN_DEFINITE)
		info->leader = info->addr;
	if (info->verdict == SCAN_INDIRECT)
		info->leader = info->addr + (u64)wire_get_signed(v);
	return v->is_bad ? -EPROTO : 0;
}

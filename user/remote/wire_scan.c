/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Turn blocks and verdicts into bytes and back: each is the difference to the one before. */
#include "user/remote/wire_scan.h"

#include <errno.h>
#include <string.h>

#include "user/heap/heap.h"

enum { BLOCK_UNSURE = 1, BLOCK_PENDING = 2, BLOCK_IGNORED = 4, BLOCK_BITS = 3 };
enum { WISH_PARTIAL = 1, WISH_LAST = 2, WISH_WHYS = 4, WISH_UNALIGNED = 8, WISH_COVER = 16, WISH_ALL = 31 };

void wire_put_block(struct wire_body *b, struct wire_scan_at *at, const struct heap_block *block)
{
	wire_put_varint(b, block->addr - at->addr);
	wire_put_varint(b, block->size << BLOCK_BITS | (block->is_unsure ? BLOCK_UNSURE : 0) |
				   (block->is_pending ? BLOCK_PENDING : 0) |
				   (block->is_ignored ? BLOCK_IGNORED : 0));
	wire_put_signed(b, (s64)(block->order - at->order));
	at->addr = block->addr;
	at->order = block->order;
}

int wire_get_block(struct wire_view *v, struct wire_scan_at *at, struct heap_block *block)
{
	u64 distance = wire_get_varint(v), size = wire_get_varint(v);

	memset(block, 0, sizeof(*block));
	at->order += (u64)wire_get_signed(v);
	if (v->is_bad || distance > UINT64_MAX - at->addr)
		return -EPROTO;
	at->addr += distance;
	block->addr = at->addr;
	block->size = size >> BLOCK_BITS;
	block->is_unsure = size & BLOCK_UNSURE;
	block->is_pending = size & BLOCK_PENDING;
	block->is_ignored = size & BLOCK_IGNORED;
	block->order = at->order;
	/* Refuse sizes and addresses that user/heap cannot hold. */
	return block->size >> 48 || block->addr >> 56 ? -EPROTO : 0;
}

void wire_put_wish(struct wire_body *b, const struct wire_scan_wish *wish)
{
	wire_put_number(b, wish->nr_blocks, 8);
	wire_put_number(b, wish->max_pause_ns, 8);
	wire_put_number(b, wish->pointer_mask, 8);
	wire_put_number(b,
			(wish->is_partial ? WISH_PARTIAL : 0) | (wish->is_last ? WISH_LAST : 0) |
				(wish->wants_whys ? WISH_WHYS : 0) |
				(wish->want_unaligned ? WISH_UNALIGNED : 0) |
				(wish->has_all ? WISH_COVER : 0),
			1);
}

int wire_get_wish(struct wire_view *v, struct wire_scan_wish *out)
{
	u64 flags;

	memset(out, 0, sizeof(*out));
	out->nr_blocks = wire_get_number(v, 8);
	out->max_pause_ns = wire_get_number(v, 8);
	out->pointer_mask = wire_get_number(v, 8);
	flags = wire_get_number(v, 1);
	out->is_partial = flags & WISH_PARTIAL;
	out->is_last = flags & WISH_LAST;
	out->wants_whys = flags & WISH_WHYS;
	out->want_unaligned = flags & WISH_UNALIGNED;
	out->has_all = flags & WISH_COVER;
	return v->is_bad || v->len || flags & ~(u64)WISH_ALL ? -EPROTO : 0;
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

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The host's half of a scan on another machine. */
#include "user/scan/scan_remote.h"

#include <string.h>

#include "user/heap/heap.h"
#include "user/scan/scan_state.h"

int scan_send(const struct scan *s, const struct heap *heap,
	      int (*visit)(void *ctx, const struct heap_block *block), void *ctx)
{
	for (u32 i = 0; i < s->nr; i++) {
		const struct scan_block *b = &s->blocks[i];
		struct heap_block block = { 0 };
		int err;

		/* A block in a realloc is not found, and its age does not matter. */
		if (!heap_find(heap, b->addr, &block))
			block.order = 0;
		block.addr = b->addr;
		block.size = scan_block_size(s, i);
		block.is_unsure = b->flags & BLOCK_TAINTED;
		block.is_pending = b->flags & BLOCK_YOUNG;
		err = visit(ctx, &block);
		if (err)
			return err;
	}
	return 0;
}

int scan_elsewhere(struct scan *s)
{
	return scan_apply_drained(s);
}

void scan_take(struct scan *s, const struct scan_block_info *info)
{
	u32 i = scan_find_start(s, info->addr), leader = BLOCK_NONE;
	enum scan_verdict verdict = info->verdict;

	if (i == BLOCK_NONE)
		return;
	if (info->leader)
		leader = scan_find_start(s, info->leader);
	if (verdict >= SCAN_DEFINITE && verdict <= SCAN_INDIRECT && leader == BLOCK_NONE)
		verdict = SCAN_UNSURE;
	s->blocks[i].verdict = verdict;
	s->blocks[i].link = leader;
}

void scan_take_end(struct scan *s, const struct scan_result *result)
{
	struct scan_sums sums = { 0 };

	for (u32 i = 0; i < s->nr; i++) {
		struct scan_block *b = &s->blocks[i];

		if (b->verdict == SCAN_NONE || b->verdict >= NR_SCAN_VERDICTS) {
			b->verdict = SCAN_UNSURE;
			b->link = BLOCK_NONE;
		}
		sums.of[b->verdict].blocks++;
		sums.of[b->verdict].bytes += scan_block_size(s, i);
	}
	s->result = *result;
	s->result.sums = sums;
}

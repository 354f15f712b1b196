/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Pointers with marks of the program in bits that are no address: they hold nothing, but a report can say so. */
#include "user/scan/scan_look.h"
#include "user/scan/scan_shapes.h"

#include <errno.h>
#include <stdlib.h>

#include "user/lib/array.h"

enum { MARKS = 7, GOOD_PART = 4 }; /* one in so many */

int looker_note_tagged(struct looker *r, u64 value)
{
	taddr_t addr = value & SCAN_ADDRESS;
	u32 block = scan_lookup(r->s, addr);

	if (block == BLOCK_NONE || addr - r->s->blocks[block].addr > MARKS)
		return 0;
	r->has_low_marks |= addr != r->s->blocks[block].addr;
	return looker_list_add(&r->tagged, block);
}

static bool scan_is_tagged(const struct scan *s, u32 block)
{
	return block < s->nr && s->tagged[block / 64] >> block % 64 & 1;
}

void scan_count_tagged(struct scan *s)
{
	const struct scan_sum *of = s->result.sums.of;
	struct scan_sum sum = { 0 };

	for (u32 i = 0; s->tagged && i < s->nr; i++) {
		const struct scan_block *b = &s->blocks[i];
		bool is_lost = b->verdict == SCAN_DEFINITE || b->verdict == SCAN_INDIRECT;

		if (!is_lost || (!scan_is_tagged(s, i) && !scan_is_tagged(s, b->link)))
			continue;
		sum.blocks++;
		sum.bytes += scan_block_size(s, i);
	}
	if (!sum.blocks || sum.blocks * GOOD_PART < of[SCAN_DEFINITE].blocks + of[SCAN_INDIRECT].blocks)
		return;
	s->result.tagged = sum;
	s->result.tag_mask = (s->options.pointer_mask ? s->options.pointer_mask : UINT64_MAX) & SCAN_ADDRESS;
	if (s->has_low_marks)
		s->result.tag_mask &= ~(u64)MARKS;
}

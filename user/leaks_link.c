/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which callers' blocks were lost through which other callers' definite ones: a sum for each pair. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "user/heap.h"
#include "user/leaks.h"
#include "user/lib/cleanup.h"

enum { FIRST_SLOTS = 256 };

/* Pairs found so far; slots hold index + 1, 0 = free. */
struct linking {
	struct leaks *leaks;
	const struct heap *heap;
	const u8 *left_out; /* borrowed; bits by number of the block, or NULL */
	size_t number;
	u32 *slots;	 /* owned */
	size_t nr_slots; /* a power of two, at least twice the pairs */
};

static size_t slot_of(const struct linking *k, u32 row, u32 leader)
{
	return (((u64)leader << 32 | row) * 0x9e3779b97f4a7c15ULL >> 32) & (k->nr_slots - 1);
}

static struct leak_link *find_link(const struct linking *k, u32 row, u32 leader, size_t *slot)
{
	for (*slot = slot_of(k, row, leader); k->slots[*slot]; *slot = (*slot + 1) & (k->nr_slots - 1)) {
		struct leak_link *link = &k->leaks->links[k->slots[*slot] - 1];

		if (link->row == row && link->leader == leader)
			return link;
	}
	return NULL;
}

/* Room for twice as many pairs. */
static int grow(struct linking *k)
{
	size_t nr = k->nr_slots ? k->nr_slots * 2 : FIRST_SLOTS;
	struct leak_link *links = reallocarray(k->leaks->links, nr / 2, sizeof(*links));
	u32 *slots;

	if (!links)
		return -ENOMEM;
	k->leaks->links = links;
	slots = calloc(nr, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	free(k->slots);
	k->slots = slots;
	k->nr_slots = nr;
	for (size_t i = 0; i < k->leaks->nr_links; i++) {
		size_t slot;

		find_link(k, links[i].row, links[i].leader, &slot);
		slots[slot] = (u32)i + 1;
	}
	return 0;
}

static int add(struct linking *k, u32 row, u32 leader, u64 size)
{
	struct leaks *l = k->leaks;
	struct leak_link *link;
	size_t slot;

	if (l->nr_links * 2 >= k->nr_slots && grow(k))
		return -ENOMEM;
	link = find_link(k, row, leader, &slot);
	if (!link) {
		link = &l->links[l->nr_links++];
		*link = (struct leak_link){ .row = row, .leader = leader };
		k->slots[slot] = (u32)l->nr_links;
	}
	link->sum.blocks++;
	link->sum.bytes += size;
	return 0;
}

static int visit(void *ctx, const struct scan_block_info *info)
{
	struct linking *k = ctx;
	struct heap_block block, leader;
	size_t number = k->number++;

	if (k->left_out && k->left_out[number / 8] >> number % 8 & 1)
		return 0;
	if (info->verdict != SCAN_INDIRECT || !heap_find(k->heap, info->addr, &block) ||
	    !heap_find(k->heap, info->leader, &leader))
		return 0;
	if (block.row >= k->leaks->nr_rows || leader.row >= k->leaks->nr_rows)
		return 0;
	return add(k, block.row, leader.row, info->size);
}

int leaks_link(struct leaks *l, const struct scan *scan, const struct heap *heap, const u8 *left_out)
{
	struct linking k = { .leaks = l, .heap = heap, .left_out = left_out };
	int err = 0;

	if (scan_result(scan).sums.of[SCAN_INDIRECT].blocks)
		err = scan_for_each(scan, visit, &k);
	free(k.slots);
	for (size_t i = 0; i < l->nr_links; i++) {
		struct scan_sum *through = &l->rows[l->links[i].leader].through;

		through->blocks += l->links[i].sum.blocks;
		through->bytes += l->links[i].sum.bytes;
	}
	return err;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sums for pairs of callers: blocks of one that were lost through definite blocks of the other. */
#include <errno.h>
#include <string.h>

#include "user/heap/heap_sample.h"
#include "user/lib/array.h"
#include "user/lib/hash_index.h"
#include "user/scan/leaks.h"
#include "user/scan/leaks_why.h"

/* Pairs of callers found so far. */
struct linking {
	struct leaks *leaks;
	const struct heap *heap;
	const u8 *left_out; /* borrowed; one bit per block, or NULL */
	size_t nr_seen;	    /* blocks visited so far */
	size_t max_links;
	struct hash_index index; /* links by their two rows */
};

static u64 hash_pair(u32 row, u32 leader)
{
	return hash_u64((u64)leader << 32 | row);
}

static struct leak_link *find_link(const struct linking *k, u32 row, u32 leader)
{
	u32 at = 0, i;

	while ((i = hash_index_next(&k->index, hash_pair(row, leader), &at)) != HASH_NO_ITEM)
		if (k->leaks->links[i].row == row && k->leaks->links[i].leader == leader)
			return &k->leaks->links[i];
	return NULL;
}

/* A new link without blocks, NULL without memory. */
static struct leak_link *new_link(struct linking *k, u32 row, u32 leader)
{
	struct leaks *l = k->leaks;

	if (array_reserve(l->links, k->max_links, l->nr_links + 1) ||
	    hash_index_add(&k->index, hash_pair(row, leader), (u32)l->nr_links))
		return NULL;
	l->links[l->nr_links] = (struct leak_link){ .row = row, .leader = leader };
	return &l->links[l->nr_links++];
}

static int leaks_link_add(struct linking *k, u32 row, u32 leader, struct heap_worth w)
{
	struct leak_link *link = find_link(k, row, leader);

	if (!link)
		link = new_link(k, row, leader);
	if (!link)
		return -ENOMEM;
	link->sum.blocks += HAS_SAMPLES ? w.nr : 1;
	link->sum.bytes += w.bytes;
	return 0;
}

static int leaks_link_visit(void *ctx, const struct scan_block_info *info)
{
	struct linking *k = ctx;
	struct heap_block block, leader;
	size_t number = k->nr_seen++;

	if (k->left_out && k->left_out[number / 8] >> number % 8 & 1)
		return 0;
	if (info->verdict != SCAN_INDIRECT || !heap_find(k->heap, info->addr, &block) ||
	    !heap_find(k->heap, info->leader, &leader))
		return 0;
	if (block.row >= k->leaks->nr_rows || leader.row >= k->leaks->nr_rows)
		return 0;
	return leaks_link_add(k, block.row, leader.row, heap_worth_or(k->heap, &block, info->size));
}

static void leaks_link_add_sum(struct scan_sum *to, const struct scan_sum *more)
{
	to->blocks += more->blocks;
	to->bytes += more->bytes;
}

static void leaks_link_join_rows(struct leak_row *to, const struct leak_row *more)
{
	for (size_t i = 0; i < ARRAY_SIZE(to->sums.of); i++)
		leaks_link_add_sum(&to->sums.of[i], &more->sums.of[i]);
	leaks_link_add_sum(&to->through, &more->through);
	leaks_link_add_sum(&to->suppressed, &more->suppressed);
}

static u32 leaks_link_follow(u32 row, const u32 *to, size_t nr)
{
	return row < nr ? to[row] : row;
}

static void follow_why(struct leak_why *why, const u32 *to, size_t nr)
{
	why->row = leaks_link_follow(why->row, to, nr);
	for (size_t i = 0; i < why->nr_steps; i++)
		why->steps[i].row = leaks_link_follow(why->steps[i].row, to, nr);
}

void leaks_fold(struct leaks *l, const u32 *to, size_t nr)
{
	for (size_t i = 0; i < l->nr_rows && i < nr; i++) {
		struct leak_row row = l->rows[i];

		memset(&l->rows[i], 0, sizeof(row));
		leaks_link_join_rows(&l->rows[to[i]], &row);
	}
	for (size_t i = 0; i < l->nr_links; i++) {
		l->links[i].row = leaks_link_follow(l->links[i].row, to, nr);
		l->links[i].leader = leaks_link_follow(l->links[i].leader, to, nr);
	}
	for (size_t i = 0; i < l->nr_whys; i++)
		follow_why(&l->whys[i], to, nr);
	if (l->asked)
		follow_why(l->asked, to, nr);
}

int leaks_link(struct leaks *l, const struct scan *scan, const struct heap *heap, const u8 *left_out)
{
	struct linking k = { .leaks = l, .heap = heap, .left_out = left_out };
	int err = 0;

	if (scan_result(scan).sums.of[SCAN_INDIRECT].blocks)
		err = scan_for_each(scan, leaks_link_visit, &k);
	hash_index_fini(&k.index);
	for (size_t i = 0; i < l->nr_links; i++) {
		struct scan_sum *through = &l->rows[l->links[i].leader].through;

		through->blocks += l->links[i].sum.blocks;
		through->bytes += l->links[i].sum.bytes;
	}
	return err;
}

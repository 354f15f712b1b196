/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A walk along pointers, which loads the memory that it needs soon. */
#include "user/scan/scan_walk.h"

#include <string.h>

enum { CACHE_LINE = 64 }; /* bytes; the pointers of a group of blocks take few of them */

void walk_init(struct lost_walk *wk, struct scan *s, enum walk_kind kind, enum scan_verdict verdict)
{
	memset(wk, 0, sizeof(*wk));
	wk->s = s;
	wk->kind = kind;
	wk->verdict = verdict;
	wk->top = BLOCK_NONE;
}

static void scan_walk_push(struct lost_walk *wk, u32 block)
{
	wk->s->blocks[block].link = wk->top;
	wk->top = block;
}

/* Take the next block to follow. False if no block is left. */
static bool next_block(struct lost_walk *wk, u32 *block)
{
	const struct edge_store *e = &wk->s->edges;

	while (wk->nr_blocks < WALK_BLOCKS && wk->top != BLOCK_NONE) {
		u32 taken = wk->top;

		wk->top = wk->s->blocks[taken].link;
		if (wk->kind == WALK_CLAIM)
			wk->s->blocks[taken].link = wk->leader;
		__builtin_prefetch(&e->groups[taken / EDGE_GROUP]);
		wk->blocks[(wk->first_block + wk->nr_blocks++) % WALK_BLOCKS] = taken;
	}
	if (!wk->nr_blocks)
		return false;
	if (wk->nr_blocks > WALK_BLOCKS / 2) {
		u32 later = wk->blocks[(wk->first_block + WALK_BLOCKS / 2) % WALK_BLOCKS];
		const u8 *edges = e->bytes + e->groups[later / EDGE_GROUP];

		__builtin_prefetch(edges);
		__builtin_prefetch(edges + CACHE_LINE);
	}
	*block = wk->blocks[wk->first_block];
	wk->first_block = (wk->first_block + 1) % WALK_BLOCKS;
	wk->nr_blocks--;
	return true;
}

/* Enter @block, to which a pointer leads, if the kind of walk enters it. */
static void scan_walk_look(struct lost_walk *wk, u32 block)
{
	struct scan_block *b = &wk->s->blocks[block];

	if (b->verdict != SCAN_NONE || (wk->kind != WALK_CLAIM && b->is_marked == (wk->kind == WALK_MARK)))
		return;
	if (wk->kind == WALK_CLAIM)
		b->verdict = wk->verdict;
	else
		b->is_marked = wk->kind == WALK_MARK;
	scan_walk_push(wk, block);
}

static void look_at_oldest(struct lost_walk *wk)
{
	u32 at = wk->first_target;

	wk->first_target = (at + 1) % WALK_TARGETS;
	wk->nr_targets--;
	scan_walk_look(wk, wk->targets[at]);
}

/* Queue the blocks that @block points to. */
static void scan_walk_follow(struct lost_walk *wk, u32 block)
{
	struct edge_iter it;

	edge_begin(&it, &wk->s->edges, block);
	while (edge_next(&it)) {
		u32 at;

		if (wk->nr_targets == WALK_TARGETS)
			look_at_oldest(wk);
		__builtin_prefetch(&wk->s->blocks[it.target]);
		at = (wk->first_target + wk->nr_targets++) % WALK_TARGETS;
		wk->targets[at] = it.target;
	}
}

void walk_from(struct lost_walk *wk, u32 block)
{
	u32 next;

	scan_walk_push(wk, block);
	for (;;) {
		if (next_block(wk, &next))
			scan_walk_follow(wk, next);
		else if (wk->nr_targets)
			look_at_oldest(wk);
		else
			return;
	}
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The verdicts: which blocks are reachable along the pointers, and which block lost each of the others. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "user/heap/heap.h"
#include "user/lib/progress.h"
#include "user/scan/scan_parts.h"
#include "user/scan/scan_shapes.h"
#include "user/scan/scan_state.h"

/* A walk along pointers, which loads the memory that it needs soon. */

/* Which blocks a walk enters, and what it writes to them. All follow each pointer to a block without a verdict. */
enum walk_kind {
	WALK_MARK,   /* enter blocks that are not marked, and mark them */
	WALK_UNMARK, /* enter marked blocks, and clear the mark */
	WALK_CLAIM,  /* give them a verdict, and the leader as link */
};

enum { WALK_BLOCKS = 16, WALK_TARGETS = 32 };

/* A walk mostly waits for memory, so it loads blocks ahead and follows others meanwhile. */
struct lost_walk {
	struct scan *s;
	enum walk_kind kind;
	enum scan_verdict verdict;
	u32 leader; /* WALK_CLAIM */
	u32 top;    /* of the stack of blocks to follow, linked by link: needs no memory and no recursion */
	u32 blocks[WALK_BLOCKS]; /* being loaded, to be followed next */
	u32 first_block, nr_blocks;
	u32 targets[WALK_TARGETS]; /* being loaded, to be entered next */
	u32 first_target, nr_targets;
};

enum { CACHE_LINE = 64 }; /* bytes; the pointers of a group of blocks take few of them */

static void walk_init(struct lost_walk *wk, struct scan *s, enum walk_kind kind, enum scan_verdict verdict)
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

/* Follow @block, which has its verdict or mark already, and all blocks that it leads to. */
static void walk_from(struct lost_walk *wk, u32 block)
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

/*
 * 1. Reachable: from roots along pointers to starts of blocks.
 * 2. Possible: from roots and reachable blocks along all pointers.
 * 3. Unsure: other blocks that are tainted or young, and blocks that only these lead to.
 * 4. All other blocks are lost.
 *
 * Leaders of lost blocks: no other lost block leads to a leader, or only blocks of its own cycle, of which it is the
 * oldest. A first search starts from each block that is not seen yet, in order of age. All leaders are such starts, but
 * also blocks that a later start leads to. A second search goes from the starts, the last one first: a start that is
 * seen before its turn is not a leader.
 */

enum {
	FILTER_BITS = 20,
	FEW = 16, /* if fewer than one block in 16 is lost, finding each is faster than visiting all blocks */
};

/* Find roots whose pointer to the middle counts as one to the start. The block was read after the root. */
static void lift_roots(struct scan *s, struct spread *spread)
{
	struct root_iter it = { &s->roots };
	struct root_ref ref;

	while (root_next(&it, &ref)) {
		if (scan_is_start(s, ref.block, ref.offset))
			s->blocks[ref.block].flags |= BLOCK_ROOT;
		else if (!IS_AGENT && spread->notes)
			scan_note_root(spread, &ref);
	}
}

/* The lost blocks, in order of age after sort_by_age(). */
struct lost {
	struct scan *s;
	u32 *blocks; /* owned */
	u32 nr;
	u64 *filter; /* owned; the bit of each lost block is set, because looking up all blocks takes long */
};

static bool scan_judge_is_lost(const struct scan_block *b)
{
	return b->verdict == SCAN_NONE;
}

/* The bit of @addr in the filter. */
static u32 filter_bit(taddr_t addr)
{
	return (u32)((addr >> 3) * 0x9e3779b97f4a7c15ULL >> (64 - FILTER_BITS));
}

/* The distance from the oldest block in the order of allocations, in units that leave 32 bits. */
static u32 scan_judge_age_of(const struct scan *s, const struct heap_block *block)
{
	u64 age = block->order < s->first_order ? 0 : (block->order - s->first_order) >> s->order_shift;

	return age < UINT32_MAX ? (u32)age : UINT32_MAX;
}

static int note_age(void *ctx, const struct heap_block *block)
{
	const struct lost *lost = ctx;
	u32 bit = filter_bit(block->addr), i;

	if (!(lost->filter[bit / 64] >> (bit % 64) & 1))
		return 0;
	i = scan_find_start(lost->s, block->addr);
	if (i != BLOCK_NONE && scan_judge_is_lost(&lost->s->blocks[i]))
		lost->s->blocks[i].link = scan_judge_age_of(lost->s, block);
	return 0;
}

static int note_ages(struct lost *lost)
{
	const struct scan_books *books = &lost->s->books;
	struct scan_block *blocks = lost->s->blocks;
	struct heap_block found;

	if (!books->find || lost->nr > lost->s->nr / FEW)
		return books->for_each(books->ctx, note_age, lost);
	for (u32 i = 0; i < lost->nr; i++)
		if (books->find(books->ctx, blocks[lost->blocks[i]].addr, &found))
			blocks[lost->blocks[i]].link = scan_judge_age_of(lost->s, &found);
	return 0;
}

/* Is @a older? Only the books know, as the units are too large. */
static bool is_older_in_books(const struct scan *s, u32 a, u32 b)
{
	struct heap_block block_a, block_b;

	if (!s->books.find(s->books.ctx, s->blocks[a].addr, &block_a) ||
	    !s->books.find(s->books.ctx, s->blocks[b].addr, &block_b) || block_a.order == block_b.order)
		return a < b;
	return block_a.order < block_b.order;
}

static bool is_older(const struct scan *s, u32 a, u32 b)
{
	u32 age_a = s->blocks[a].link, age_b = s->blocks[b].link;

	if (age_a != age_b)
		return age_a < age_b;
	return s->order_shift && s->books.find ? is_older_in_books(s, a, b) : a < b;
}

/* Heapsort: in place, and n log n at worst. */
static void scan_judge_sift_down(const struct scan *s, u32 *v, u32 root, u32 nr)
{
	u32 x = v[root];

	for (u32 child; (child = 2 * root + 1) < nr; root = child) {
		if (child + 1 < nr && is_older(s, v[child], v[child + 1]))
			child++;
		if (!is_older(s, x, v[child]))
			break;
		v[root] = v[child];
	}
	v[root] = x;
}

static void sort_by_age(const struct lost *lost)
{
	u32 *v = lost->blocks;

	for (u32 i = lost->nr / 2; i-- > 0;)
		scan_judge_sift_down(lost->s, v, i, lost->nr);
	for (u32 end = lost->nr; end-- > 1;) {
		u32 x = v[0];

		v[0] = v[end];
		v[end] = x;
		scan_judge_sift_down(lost->s, v, 0, end);
	}
}

static void scan_judge_add_lost(struct lost *lost, u32 block)
{
	u32 bit = filter_bit(lost->s->blocks[block].addr);

	lost->filter[bit / 64] |= 1ULL << (bit % 64);
	lost->blocks[lost->nr++] = block;
	lost->s->blocks[block].link = UINT32_MAX;
}

/* The blocks that nothing in @spread has led to. */
static int find_lost(struct lost *lost, const struct spread *spread)
{
	u32 nr_words = spread_words(spread);
	size_t nr = 0;
	int err;

	for (u32 w = 0; w < nr_words; w++)
		nr += (size_t)__builtin_popcountll(spread_unseen(spread, w));
	lost->blocks = calloc(nr ? nr : 1, sizeof(*lost->blocks));
	lost->filter = calloc(1, (1 << FILTER_BITS) / 8);
	if (!lost->blocks || !lost->filter)
		return -ENOMEM;
	for (u32 w = 0; w < nr_words; w++)
		for (u64 left = spread_unseen(spread, w); left; left &= left - 1)
			scan_judge_add_lost(lost, w * SPREAD_WORD + (u32)__builtin_ctzll(left));
	if (!lost->nr)
		return 0;
	while ((lost->s->last_order - lost->s->first_order) >> lost->s->order_shift >= UINT32_MAX)
		lost->s->order_shift++;
	err = note_ages(lost);
	if (!err)
		sort_by_age(lost);
	return err;
}

/* Mark @start and the lost blocks that it leads to, or clear their marks. */
static void mark_from(struct lost_walk *wk, u32 start)
{
	wk->s->blocks[start].is_marked = wk->kind == WALK_MARK;
	walk_from(wk, start);
}

/* Keep only the leaders in @lost, oldest first. */
static void find_leaders(struct lost *lost)
{
	struct scan *s = lost->s;
	u32 nr = 0, first;
	struct lost_walk wk;

	walk_init(&wk, s, WALK_MARK, SCAN_NONE);
	for (u32 i = 0; i < lost->nr; i++) {
		if (s->blocks[lost->blocks[i]].is_marked)
			continue;
		mark_from(&wk, lost->blocks[i]);
		lost->blocks[nr++] = lost->blocks[i];
	}
	/* Now all lost blocks are marked. */
	walk_init(&wk, s, WALK_UNMARK, SCAN_NONE);
	first = nr;
	for (u32 i = nr; i-- > 0;) {
		if (!s->blocks[lost->blocks[i]].is_marked)
			continue;
		mark_from(&wk, lost->blocks[i]);
		lost->blocks[--first] = lost->blocks[i];
	}
	lost->nr = nr - first;
	memmove(lost->blocks, lost->blocks + first, lost->nr * sizeof(*lost->blocks));
}

static int judge_lost(struct scan *s, const struct spread *spread)
{
	struct lost lost = { .s = s };
	int err = find_lost(&lost, spread);
	struct lost_walk wk;

	if (!err && scan_is_unwanted(s))
		err = -ECANCELED;
	if (!err && lost.nr)
		find_leaders(&lost);
	/* A block is lost through the oldest leader that leads to it. */
	walk_init(&wk, s, WALK_CLAIM, SCAN_INDIRECT);
	for (u32 i = 0; i < lost.nr && !err; i++) {
		wk.leader = lost.blocks[i];
		s->blocks[wk.leader].verdict = SCAN_DEFINITE;
		walk_from(&wk, wk.leader);
	}
	free(lost.blocks);
	free(lost.filter);
	return err;
}

static int judge_reached_once(struct spread *spread)
{
	int err = parts_spread_from(spread, BLOCK_ROOT, SCAN_REACHABLE);

	return err ? err : parts_spread_from(spread, BLOCK_SEED, SCAN_POSSIBLE);
}

static int judge_reached_again(struct spread *spread)
{
	spread_forget(spread);
	return judge_reached_once(spread);
}

/* Find the reachable and the possible blocks. Where callers keep some of their blocks behind headers, do so again. */
static int judge_reached(struct spread *spread)
{
	bool are_all = true, is_any = false;
	int err = judge_reached_once(spread);

	if (err || !scan_has_rules(spread->s))
		return err;
	err = scan_find_behind(spread, &are_all);
	if (!err && !are_all)
		err = judge_reached_again(spread);
	if (!err)
		err = scan_find_owners(spread, &is_any);
	return err || !is_any ? err : judge_reached_again(spread);
}

/* Make verdicts unsure that cannot be given, but keep the leaders. Then compute the sums. */
static void settle_sums(struct scan *s)
{
	struct scan_sums sums = { 0 };
	bool is_complete = s->result.is_complete, has_parts = s->parts != NULL;

	for (u32 i = 0; i < s->nr; i++) {
		struct scan_block *b = &s->blocks[i];
		struct scan_sum *sum;

		if (b->verdict != SCAN_DEFINITE && b->verdict != SCAN_INDIRECT)
			b->link = BLOCK_NONE;
		else if (!is_complete)
			b->verdict = SCAN_UNSURE;
		if ((b->flags & BLOCK_TAINTED) || ((b->flags & BLOCK_YOUNG) && b->verdict == SCAN_POSSIBLE))
			b->verdict = SCAN_UNSURE;
		if (!IS_AGENT && s->behind && b->verdict == SCAN_REACHABLE &&
		    s->behind[i / 64] >> i % 64 & 1) {
			s->result.behind.blocks++;
			s->result.behind.bytes += scan_block_size(s, i);
		}
		sum = &sums.of[b->verdict];
		sum->blocks += !has_parts || !parts_has(s, i);
		sum->bytes += b->size == BLOCK_BIG ? scan_block_size(s, i) : b->size;
	}
	s->result.sums = sums;
}

int scan_judge(struct scan *s)
{
	struct spread spread;
	int err;

	if (!s->nr)
		return 0;
	progress_phase("judging its blocks");
	scan_use_huge_pages(s->edges.bytes, s->edges.nr, true);
	err = IS_AGENT ? 0 : scan_find_ends(s);
	if (!IS_AGENT && !err)
		err = scan_find_links(s);
	if (err)
		return err;
	err = spread_init(&spread, s);
	if (!err) {
		lift_roots(s, &spread);
		parts_settle(s);
		err = judge_reached(&spread);
	}
	if (!err)
		err = parts_spread_from(&spread, BLOCK_TAINTED | BLOCK_YOUNG, SCAN_UNSURE);
	if (!IS_AGENT && !err)
		err = spread_from(&spread, 0, SCAN_NONE);
	if (!err)
		err = judge_lost(s, &spread);
	spread_fini(&spread);
	if (!err) {
		parts_join_lost(s);
		settle_sums(s);
		if (!IS_AGENT)
			scan_count_tagged(s);
	}
	return err;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Give a verdict to all blocks that some blocks lead to. The longest part of a scan, made to spare the caches. */
#include "user/scan/scan_spread.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "user/scan/scan_shapes.h"

/*
 * A bit per block says that it was seen, and the array of blocks is written only at the end. While few blocks are
 * waiting, they are followed one by one from a stack, and each costs a cache miss. When many are waiting, they become
 * bits too, and a sweep goes through all blocks by address, also through those that it finds ahead of itself. A sweep
 * follows at least one block in FEW, so few sweeps are needed.
 */

enum { FEW = 16, MIN_STACK = 1024, AHEAD = 16, CACHE_LINE = 64, WORD_BITS = SPREAD_WORD };

static bool scan_spread_get(const u64 *bits, u32 i)
{
	return bits[i / WORD_BITS] >> (i % WORD_BITS) & 1;
}

static void scan_spread_set(u64 *bits, u32 i)
{
	bits[i / WORD_BITS] |= 1ULL << (i % WORD_BITS);
}

static void scan_spread_clear(u64 *bits, u32 i)
{
	bits[i / WORD_BITS] &= ~(1ULL << (i % WORD_BITS));
}

/* True if a pointer leads to a block that was not seen yet. Now it counts as seen. */
static inline bool is_new(struct spread *sp, u32 block, u64 offset)
{
	if (!IS_AGENT && sp->notes && !sp->only_starts && !scan_spread_get(sp->judged, block))
		spread_note(sp, block, offset);
	if (scan_spread_get(sp->seen, block))
		return false;
	if (sp->only_starts && offset && !scan_is_start(sp->s, block, offset)) {
		sp->s->blocks[block].flags |= BLOCK_SEED;
		if (!IS_AGENT && sp->notes)
			spread_note(sp, block, offset);
		return false;
	}
	scan_spread_set(sp->seen, block);
	return true;
}

static void wait_later(struct spread *sp, u32 block)
{
	scan_spread_set(sp->waiting, block);
	sp->nr_waiting++;
}

static void scan_spread_push(struct spread *sp, u32 block)
{
	__builtin_prefetch(&sp->s->edges.groups[block / EDGE_GROUP]);
	__builtin_prefetch(&sp->s->edges.lens[block]);
	sp->s->blocks[sp->depth++].link = block;
}

/* Begin to load the edges of the block that is @below the top of the stack. */
static void load_ahead(const struct spread *sp, u32 below)
{
	const struct edge_store *e = &sp->s->edges;
	const u8 *edges;

	if (sp->depth <= below)
		return;
	edges = e->bytes +
		(e->groups[sp->s->blocks[sp->depth - 1 - below].link / EDGE_GROUP] & EDGE_GROUP_AT);
	__builtin_prefetch(edges);
	__builtin_prefetch(edges + CACHE_LINE);
}

/* Follow the blocks on the stack, until it is empty or too long. */
static void run_stack(struct spread *sp)
{
	struct scan *s = sp->s;

	while (sp->depth && sp->depth < sp->limit) {
		struct edge_iter it;

		load_ahead(sp, AHEAD);
		edge_begin(&it, &s->edges, s->blocks[--sp->depth].link);
		while (edge_next(&it))
			if (is_new(sp, it.target, it.offset))
				scan_spread_push(sp, it.target);
	}
	while (sp->depth)
		wait_later(sp, s->blocks[--sp->depth].link);
}

/* Follow the waiting blocks of one group. */
static void sweep_group(struct spread *sp, u32 first, u32 end)
{
	struct edge_iter it;

	edge_begin(&it, &sp->s->edges, first);
	for (u32 i = first; i < end; i++, edge_next_source(&it)) {
		if (!scan_spread_get(sp->waiting, i))
			continue;
		scan_spread_clear(sp->waiting, i);
		sp->nr_waiting--;
		while (edge_next(&it))
			if (is_new(sp, it.target, it.offset))
				wait_later(sp, it.target);
	}
}

static void scan_spread_sweep(struct spread *sp)
{
	_Static_assert((int)EDGE_GROUP == (int)WORD_BITS, "a word of waiting for each group");

	for (u32 first = 0; first < sp->s->nr; first += EDGE_GROUP) {
		u32 left = sp->s->nr - first;

		if (sp->waiting[first / WORD_BITS])
			sweep_group(sp, first, first + (left < EDGE_GROUP ? left : EDGE_GROUP));
	}
}

/* Move the waiting blocks, which are few, to the stack. */
static void take_waiting(struct spread *sp)
{
	u32 nr_words = sp->s->nr / WORD_BITS + 1;

	for (u32 w = 0; w < nr_words && sp->nr_waiting; w++) {
		while (sp->waiting[w]) {
			u32 i = w * WORD_BITS + (u32)__builtin_ctzll(sp->waiting[w]);

			scan_spread_clear(sp->waiting, i);
			sp->nr_waiting--;
			scan_spread_push(sp, i);
		}
	}
}

int spread_init(struct spread *sp, struct scan *s)
{
	size_t nr_words = s->nr / WORD_BITS + 1;
	bool has_notes = scan_has_rules(s) && s->books.find;

	*sp = (struct spread){ .s = s, .limit = s->nr / FEW + MIN_STACK };
	sp->seen = calloc(nr_words, sizeof(*sp->seen));
	sp->waiting = calloc(nr_words, sizeof(*sp->waiting));
	sp->judged = calloc(nr_words, sizeof(*sp->judged));
	if (has_notes)
		sp->notes = calloc(nr_words * WORD_BITS, sizeof(*sp->notes));
	return sp->seen && sp->waiting && sp->judged && (!has_notes || sp->notes) ? 0 : -ENOMEM;
}

void spread_fini(struct spread *sp)
{
	free(sp->seen);
	free(sp->waiting);
	free(sp->judged);
	if (!IS_AGENT)
		free(sp->notes);
	memset(sp, 0, sizeof(*sp));
}

u32 spread_words(const struct spread *sp)
{
	return sp->s->nr / WORD_BITS + (sp->s->nr % WORD_BITS != 0);
}

u64 spread_unseen(const struct spread *sp, u32 word)
{
	u32 left = sp->s->nr - word * WORD_BITS;

	return ~sp->seen[word] & (left < WORD_BITS ? (1ULL << left) - 1 : UINT64_MAX);
}

/* Let the blocks wait that have one of @flags and were not seen yet. Mostly all blocks of a word were. */
static void begin_from(struct spread *sp, u32 flags)
{
	for (u32 w = 0; w < spread_words(sp); w++) {
		const struct scan_block *blocks = sp->s->blocks + (size_t)w * WORD_BITS;
		u64 found = 0;

		for (u64 left = spread_unseen(sp, w); left; left &= left - 1) {
			u32 i = (u32)__builtin_ctzll(left);

			found |= (u64)((blocks[i].flags & flags) != 0) << i;
		}
		sp->seen[w] |= found;
		sp->waiting[w] |= found;
		sp->nr_waiting += (u32)__builtin_popcountll(found);
	}
}

/* Write the pending verdict to its blocks. @is_over: another one comes. */
static void scan_spread_write(struct spread *sp, bool is_over)
{
	for (u32 w = 0; w < spread_words(sp); w++) {
		struct scan_block *blocks = sp->s->blocks + (size_t)w * WORD_BITS;

		for (u64 left = spread_pending(sp, w); left; left &= left - 1)
			blocks[__builtin_ctzll(left)].verdict = sp->pending;
		if (is_over)
			sp->judged[w] = sp->seen[w];
	}
}

void spread_forget(struct spread *sp)
{
	sp->pending = SCAN_NONE;
	if (sp->s->parts)
		scan_spread_write(sp, false);
	memcpy(sp->seen, sp->judged, spread_words(sp) * sizeof(*sp->seen));
}

int spread_from(struct spread *sp, u32 flags, enum scan_verdict verdict)
{
	struct scan *s = sp->s;

	if (!IS_AGENT && sp->pending != verdict)
		scan_spread_write(sp, true);
	sp->pending = verdict;
	sp->only_starts = verdict == SCAN_REACHABLE;
	begin_from(sp, flags);
	while (sp->nr_waiting) {
		if (scan_is_unwanted(s))
			return -ECANCELED;
		if (sp->nr_waiting >= sp->limit) {
			scan_spread_sweep(sp);
			continue;
		}
		take_waiting(sp);
		run_stack(sp);
	}
	/* Parts of a mapping ask for verdicts. The agent has no use for the blocks of one verdict alone. */
	if (IS_AGENT || s->parts)
		scan_spread_write(sp, IS_AGENT);
	return 0;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Mappings in several parts: pointers from each to the others, and one leader. */
#include "user/scan/scan_parts.h"

#include <errno.h>
#include <stdlib.h>

#include "user/heap/heap.h"
#include "user/lib/array.h"

enum {
	MAX_ROUNDS = 64, /* of spreading: each goes through all blocks */
	MAX_LEADERS = 4, /* from the leader of a part to the leader of its mapping, and so on */
};

struct part {
	taddr_t addr;
	u32 whole; /* number of the mapping in the heap */
	u32 block; /* of the scan */
	u32 first; /* block of the first part */
};

/* Sorted by mapping and address at first, then by block. */
struct scan_parts {
	struct part *list; /* owned */
	size_t nr, max;
};

int parts_note(struct scan *s, const struct heap_block *block)
{
	int err;

	if (!block->whole)
		return 0;
	if (!s->parts)
		s->parts = calloc(1, sizeof(*s->parts));
	if (!s->parts)
		return -ENOMEM;
	err = array_reserve(s->parts->list, s->parts->max, s->parts->nr + 1);
	if (!err)
		s->parts->list[s->parts->nr++] = (struct part){ .addr = block->addr, .whole = block->whole };
	return err;
}

void parts_free(struct scan *s)
{
	if (s->parts)
		free(s->parts->list);
	free(s->parts);
}

static int by_whole(const void *a, const void *b)
{
	const struct part *x = a, *y = b;

	if (x->whole != y->whole)
		return x->whole < y->whole ? -1 : 1;
	return (x->addr > y->addr) - (x->addr < y->addr);
}

static int by_block(const void *a, const void *b)
{
	const struct part *x = a, *y = b;

	return (x->block > y->block) - (x->block < y->block);
}

void parts_settle(struct scan *s)
{
	struct scan_parts *parts = s->parts;
	size_t nr = 0;

	if (!parts)
		return;
	qsort(parts->list, parts->nr, sizeof(*parts->list), by_whole);
	for (size_t i = 0; i < parts->nr; i++) {
		struct part part = parts->list[i];

		/* A part may have been unmapped since. */
		part.block = scan_find_start(s, part.addr);
		if (part.block == BLOCK_NONE)
			continue;
		part.first = nr && parts->list[nr - 1].whole == part.whole ? parts->list[nr - 1].first
									   : part.block;
		parts->list[nr++] = part;
	}
	parts->nr = nr;
	qsort(parts->list, nr, sizeof(*parts->list), by_block);
}

u32 parts_first(const struct scan *s, u32 block)
{
	const struct scan_parts *parts = s->parts;
	size_t at;

	if (!parts)
		return block;
	at = array_search(i, 0, parts->nr, parts->list[i].block < block);
	return at < parts->nr && parts->list[at].block == block ? parts->list[at].first : block;
}

bool parts_has(const struct scan *s, u32 block)
{
	return s->parts && parts_first(s, block) != block;
}

/* Set @flag on parts without a verdict whose mapping has a part with @verdict, or on all. Returns how many. */
static u32 flag_parts(const struct scan *s, u32 flag, enum scan_verdict verdict, bool is_all)
{
	const struct scan_parts *parts = s->parts;
	u32 nr = 0;

	for (size_t i = 0; i < parts->nr; i++)
		if (s->blocks[parts->list[i].block].verdict == verdict)
			s->blocks[parts->list[i].first].is_marked = 1;
	for (size_t i = 0; i < parts->nr; i++) {
		struct scan_block *b = &s->blocks[parts->list[i].block];

		if (b->verdict != SCAN_NONE || (!is_all && !s->blocks[parts->list[i].first].is_marked))
			continue;
		b->flags |= flag;
		nr++;
	}
	for (size_t i = 0; i < parts->nr; i++)
		s->blocks[parts->list[i].first].is_marked = 0;
	return nr;
}

int parts_spread_from(struct spread *sp, u32 flags, enum scan_verdict verdict)
{
	u32 flag = flags & -flags;
	int err = spread_from(sp, flags, verdict);

	for (int i = 1; sp->s->parts && !err && i <= MAX_ROUNDS; i++) {
		if (!flag_parts(sp->s, flag, verdict, i == MAX_ROUNDS))
			return 0;
		err = spread_from(sp, flag, verdict);
	}
	return err;
}

/* The leader that @block is lost through, once parts are no leaders. */
static u32 scan_parts_leader_of(const struct scan *s, u32 block)
{
	for (int i = 0; i < MAX_LEADERS; i++) {
		u32 first = parts_first(s, block);

		if (first >= s->nr)
			return BLOCK_NONE;
		if (s->blocks[first].verdict == SCAN_DEFINITE)
			return first;
		block = s->blocks[first].link;
	}
	return BLOCK_NONE;
}

void parts_join_lost(struct scan *s)
{
	const struct scan_parts *parts = s->parts;

	for (size_t i = 0; parts && i < parts->nr; i++) {
		struct scan_block *b = &s->blocks[parts->list[i].block];

		b->verdict = s->blocks[parts->list[i].first].verdict;
		if (parts->list[i].first != parts->list[i].block)
			b->link = s->blocks[parts->list[i].first].link;
	}
	for (u32 i = 0; parts && i < s->nr; i++) {
		struct scan_block *b = &s->blocks[i];
		u32 leader;

		if (b->verdict != SCAN_INDIRECT || !parts_has(s, b->link))
			continue;
		leader = scan_parts_leader_of(s, b->link);
		b->link = leader == BLOCK_NONE ? b->link : leader;
	}
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Blocks behind headers of any length, which their owners know: which owners keep pointers to the middle only? */
#include <errno.h>
#include <stdlib.h>

#include "user/heap/heap.h"
#include "user/heap/stacks.h"
#include "user/lib/array.h"
#include "user/lib/hash_index.h"
#include "user/scan/scan_shapes.h"
#include "user/scan/scan_spread.h"

/*
 * A hash table may keep its entries behind a part whose length the owner knows, so that its blocks are reached at
 * offsets that differ. Where nearly all blocks of an owner's caller, or of its size, have a pointer to the middle of a
 * block in one place, this is how they keep it. The place is the how-manieth pointer of the owner it is. Only blocks
 * that are possibly lost anyway become reachable so, as far as their owners are.
 */
enum {
	OWNERS_NEARLY_ALL = 8, /* all but one in so many */
	OWNERS_MIN = 16,       /* owners that keep such a pointer */
	OWNERS_PLACES = 8,     /* pointers of an owner that are looked at */
	OWNERS_LEVELS = 3,     /* call stack; the two inner frames and size; size */
	OWNERS_SAMPLES = 1 << 15,
};

/* One place in the blocks of a caller. */
struct owner_place {
	u64 key;
	u32 nr, nr_inside; /* owners with a pointer there; to the middle of a block */
};

struct owners {
	const struct spread *spread;
	struct scan *s;
	struct owner_place *places; /* owned */
	size_t nr, max;
	struct hash_index index; /* of places */
	u64 keys[OWNERS_LEVELS]; /* of the present owner; 0 = none */
	bool is_any;		 /* some block is held so */
};

static bool owners_is_seen(const struct spread *sp, u32 block)
{
	return sp->seen[block / SPREAD_WORD] >> block % SPREAD_WORD & 1;
}

/* Possibly lost, and not known to be kept behind a header. */
static bool owners_is_open(const struct owners *o, u32 block)
{
	return spread_pending(o->spread, block / SPREAD_WORD) >> block % SPREAD_WORD & 1 &&
	       !end_bit(o->s->behind, block);
}

static void owners_find_keys(struct owners *o, u32 block)
{
	const struct scan_books *books = &o->s->books;
	const struct stack *stack = NULL;
	struct heap_block found;

	o->keys[0] = o->keys[1] = o->keys[2] = 0;
	if (!books->find(books->ctx, o->s->blocks[block].addr, &found))
		return;
	o->keys[2] = hash_u64(found.size + 2);
	if (!books->stacks)
		return;
	stack = stack_get(books->stacks, heap_row_get(books->ctx, found.row).stack);
	o->keys[0] = hash_u64((u64)found.row + 1) ^ 1;
	o->keys[1] = o->keys[2] ^ 1;
	for (u32 i = 0; stack && i < stack->nr_frames && i < 2; i++)
		o->keys[1] =
			hash_u64(o->keys[1] ^ stack->frames[i].offset ^ (u64)stack->frames[i].module << 40);
}

static struct owner_place *owners_find(const struct owners *o, u64 key)
{
	u32 at = 0, i;

	while ((i = hash_index_next(&o->index, key, &at)) != HASH_NO_ITEM)
		if (o->places[i].key == key)
			return &o->places[i];
	return NULL;
}

static int owners_count_place(struct owners *o, u64 key, bool is_inside)
{
	struct owner_place *place = owners_find(o, key);

	if (!place) {
		if (array_reserve(o->places, o->max, o->nr + 1) || hash_index_add(&o->index, key, (u32)o->nr))
			return -ENOMEM;
		place = &o->places[o->nr++];
		*place = (struct owner_place){ .key = key };
	}
	place->nr++;
	place->nr_inside += is_inside;
	return 0;
}

static u64 owners_key(const struct owners *o, u32 level, u32 place)
{
	return hash_u64(o->keys[level] + place);
}

static bool owners_is_habit(const struct owners *o, u32 place)
{
	for (u32 level = 0; level < OWNERS_LEVELS; level++) {
		const struct owner_place *p =
			o->keys[level] ? owners_find(o, owners_key(o, level, place)) : NULL;

		if (p && p->nr_inside >= OWNERS_MIN && p->nr_inside >= p->nr - p->nr / OWNERS_NEARLY_ALL)
			return true;
	}
	return false;
}

static int owners_count(struct owners *o, u32 block, struct edge_iter *it)
{
	int err = 0;

	for (u32 place = 0; place < OWNERS_PLACES && !err && edge_next(it); place++) {
		if (!place)
			owners_find_keys(o, block);
		for (u32 level = 0; level < OWNERS_LEVELS && !err; level++)
			if (o->keys[level])
				err = owners_count_place(o, owners_key(o, level, place),
							 it->offset && !it->may_be_end);
	}
	return err;
}

/* Hold the blocks that @block keeps so. */
static int owners_hold(struct owners *o, u32 block, struct edge_iter *it)
{
	struct scan *s = o->s;
	bool has_keys = false;

	for (u32 place = 0; place < OWNERS_PLACES && edge_next(it); place++) {
		if (!it->offset || it->may_be_end || !owners_is_open(o, it->target))
			continue;
		if (!has_keys)
			owners_find_keys(o, block);
		has_keys = true;
		if (!owners_is_habit(o, place))
			continue;
		if (!s->behind)
			s->behind = calloc(s->nr / 64 + 1, sizeof(*s->behind));
		if (!s->behind)
			return -ENOMEM;
		s->behind[it->target / 64] |= 1ULL << it->target % 64;
		if (end_bit(o->spread->judged, block))
			s->blocks[it->target].flags |= BLOCK_ROOT;
		o->is_any = true;
	}
	return 0;
}

/* Visit each block in @step that a pointer leads to. */
static int owners_for_each(struct owners *o, u32 step,
			   int (*visit)(struct owners *o, u32 block, struct edge_iter *it))
{
	struct edge_iter it;
	int err = 0;

	edge_begin(&it, &o->s->edges, 0);
	for (u32 i = 0; i < o->s->nr && !err; i++, edge_next_source(&it))
		if (i % step == 0 && owners_is_seen(o->spread, i))
			err = visit(o, i, &it);
	return err;
}

int scan_find_owners(const struct spread *sp, bool *is_any)
{
	struct owners o = { .spread = sp, .s = sp->s };
	u32 nr_open = 0;
	int err = 0;

	for (u32 w = 0; w < spread_words(sp) && sp->pending == SCAN_POSSIBLE; w++)
		nr_open += (u32)__builtin_popcountll(spread_pending(sp, w));
	*is_any = false;
	if (nr_open < OWNERS_MIN || !sp->s->books.find)
		return 0;
	err = owners_for_each(&o, sp->s->nr / OWNERS_SAMPLES + 1, owners_count);
	if (!err)
		err = owners_for_each(&o, 1, owners_hold);
	*is_any = o.is_any;
	hash_index_fini(&o.index);
	free(o.places);
	return err;
}

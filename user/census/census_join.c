/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Joins the blocks, segments, arenas and types of two allocators of a process. */
#include "user/census/census_join.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "user/lib/array.h"
#include "user/lib/cleanup.h"
#include "user/lib/hash_index.h"

enum { LEFT_OUT = NR_CENSUS_STATES /* state of a block that is not taken over */ };

struct census_sum census_count_live(const struct census_blocks *b)
{
	struct census_sum sum = { 0 };

	for (size_t i = 0; i < b->nr; i++) {
		sum.blocks += b->blocks[i].state == CENSUS_LIVE;
		sum.bytes += b->blocks[i].state == CENSUS_LIVE ? b->blocks[i].size : 0;
	}
	return sum;
}

/* The type of @to for @type of another list, which is new if @to has none. @index: of the types of @to with a word. */
static int join_type(struct census_blocks *to, struct hash_index *index, const struct census_type *type,
		     u32 *out)
{
	u64 hash = hash_u64(type->word);
	u32 item, at = 0;
	int err;

	while ((item = hash_index_next(index, hash, &at)) != HASH_NO_ITEM)
		if (to->types[item].word == type->word) {
			*out = item;
			return 0;
		}
	*out = type->first == FIRST_TEXT ? FIRST_OTHER : FIRST_UNREAD;
	if (to->nr_types >= CENSUS_MAX_TYPES)
		return 0;
	err = array_reserve(to->types, to->max_types, to->nr_types + 1);
	if (!err)
		err = hash_index_add(index, hash, (u32)to->nr_types);
	if (err)
		return err;
	*out = (u32)to->nr_types;
	to->types[to->nr_types++] = *type;
	return 0;
}

/* Give the blocks of @from the types that @to has for them. */
static int join_types(struct census_blocks *to, struct census_blocks *from)
{
	auto_free u32 *types = calloc(from->nr_types + 1, sizeof(*types));
	struct hash_index index = { 0 };
	int err = types ? 0 : -ENOMEM;

	for (size_t i = NR_CENSUS_FIRST; i < to->nr_types && !err; i++)
		err = hash_index_add(&index, hash_u64(to->types[i].word), (u32)i);
	for (size_t i = 0; i < from->nr_types && !err; i++) {
		types[i] = (u32)i;
		if (i >= NR_CENSUS_FIRST)
			err = join_type(to, &index, &from->types[i], &types[i]);
	}
	for (size_t i = 0; i < from->nr && !err; i++)
		from->blocks[i].type = types[from->blocks[i].type];
	hash_index_fini(&index);
	return err;
}

static bool has_memory(const struct census_blocks *b, const struct census_segment *s)
{
	size_t at = array_search(i, 0, b->nr_segments, b->segments[i].end <= s->start);

	return at < b->nr_segments && b->segments[at].start < s->end;
}

/* Leave out the segments of @from that lie within memory of @to, with their blocks. The number of live ones. */
static u64 leave_out_nested(const struct census_blocks *to, struct census_blocks *from)
{
	u64 nr_nested = 0;
	size_t nr = 0;

	for (size_t i = 0; i < from->nr_segments; i++) {
		const struct census_segment *s = &from->segments[i];

		if (!has_memory(to, s)) {
			from->segments[nr++] = *s;
			continue;
		}
		for (size_t k = s->first; k < s->first + s->nr; k++) {
			nr_nested += from->blocks[k].state == CENSUS_LIVE;
			from->blocks[k].state = LEFT_OUT;
		}
	}
	from->nr_segments = nr;
	return nr_nested;
}

/* Merge the blocks of both, which are by address, to @out. Returns their number. */
static size_t merge_blocks(struct census_block *out, const struct census_blocks *a,
			   const struct census_blocks *b)
{
	size_t nr = 0, i = 0, k = 0;

	while (i < a->nr || k < b->nr) {
		if (k < b->nr && b->blocks[k].state == LEFT_OUT)
			k++;
		else if (k == b->nr || (i < a->nr && a->blocks[i].addr <= b->blocks[k].addr))
			out[nr++] = a->blocks[i++];
		else
			out[nr++] = b->blocks[k++];
	}
	return nr;
}

/* The place in @blocks of the block that @s begins with in @b. */
static size_t place_of_first(const struct census_block *blocks, size_t nr, const struct census_blocks *b,
			     const struct census_segment *s)
{
	taddr_t addr = s->nr ? b->blocks[s->first].addr : 0;

	return s->nr ? array_search(i, 0, nr, blocks[i].addr < addr) : 0;
}

/* Replace the blocks of @to by those of both, to which all segments lead. */
static int join_blocks(struct census_blocks *to, struct census_blocks *from)
{
	size_t max = to->nr + from->nr, nr;
	struct census_block *blocks = malloc((max ? max : 1) * sizeof(*blocks));

	if (!blocks)
		return -ENOMEM;
	nr = merge_blocks(blocks, to, from);
	for (size_t i = 0; i < to->nr_segments; i++)
		to->segments[i].first = place_of_first(blocks, nr, to, &to->segments[i]);
	for (size_t i = 0; i < from->nr_segments; i++) {
		from->segments[i].first = place_of_first(blocks, nr, from, &from->segments[i]);
		from->segments[i].arena += (u32)to->nr_arenas;
	}
	free(to->blocks);
	to->blocks = blocks;
	to->nr = nr;
	to->max = max ? max : 1;
	return 0;
}

static void join_notes(struct census_blocks *to, const struct census_blocks *from)
{
	for (size_t i = 0; i < from->nr_notes && i < CENSUS_MAX_NOTES; i++)
		if (to->nr_notes + i < CENSUS_MAX_NOTES)
			to->notes[to->nr_notes + i] = from->notes[i];
	to->nr_notes += from->nr_notes;
}

int census_join(struct census_blocks *to, struct census_blocks *from, u64 *nr_nested)
{
	int err = join_types(to, from);

	*nr_nested = leave_out_nested(to, from);
	if (!err)
		err = join_blocks(to, from);
	for (size_t i = 0; i < from->nr_segments && !err; i++)
		err = census_add_segment(to, &from->segments[i]);
	for (size_t i = 0; i < from->nr_arenas && !err; i++)
		err = census_add_arena(to, &from->arenas[i]);
	if (err)
		return err;
	census_sort_segments(to);
	to->may_begin_within |= from->may_begin_within;
	join_notes(to, from);
	census_blocks_fini(from);
	return 0;
}

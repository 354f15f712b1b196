/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Pointers between blocks, in few bytes each. Found in one pass, and followed after the target was resumed. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "user/lib/array.h"
#include "user/scan/scan_state.h"

enum {
	CODE_END = 0,
	CODE_VPTR = 1,
	MAX_NUMBER = 10, /* bytes of the longest number */
	FIRST_BYTES = 64 << 10,
};

int edges_init(struct edge_store *e, u32 nr_blocks, u64 limit)
{
	memset(e, 0, sizeof(*e));
	e->limit = limit;
	e->groups = calloc(nr_blocks / EDGE_GROUP + 2, sizeof(*e->groups));
	return e->groups ? 0 : -ENOMEM;
}

void edges_fini(struct edge_store *e)
{
	free(e->bytes);
	free(e->groups);
	memset(e, 0, sizeof(*e));
}

static int grow(struct edge_store *e)
{
	/* Not array_reserve(): by an eighth, because large arrays move by remapping, and less room is wasted. */
	u64 larger = e->capacity ? e->capacity + e->capacity / 8 : FIRST_BYTES;
	u8 *bytes;

	if (larger > e->limit)
		return -E2BIG;
	bytes = realloc(e->bytes, larger);
	if (!bytes)
		return -ENOMEM;
	e->bytes = bytes;
	e->capacity = larger;
	return 0;
}

static int need(struct edge_store *e, u64 nr)
{
	int err = 0;

	while (e->capacity - e->nr < nr && !err)
		err = grow(e);
	return err;
}

/* End the blocks before @source. */
static int advance(struct edge_store *e, u32 source)
{
	while (e->open < source) {
		int err = need(e, 1);

		if (err)
			return err;
		e->bytes[e->nr++] = CODE_END;
		e->open++;
		if (e->open % EDGE_GROUP == 0)
			e->groups[e->open / EDGE_GROUP] = e->nr;
	}
	return 0;
}

void edge_part_init(struct edge_part *p, const struct edge_store *e)
{
	*p = (struct edge_part){ .groups = e->groups, .first = BLOCK_NONE, .last_target = BLOCK_NONE };
}

void edge_part_fini(struct edge_part *p)
{
	free(p->bytes);
	memset(p, 0, sizeof(*p));
}

static inline void put(struct edge_part *p, u64 number)
{
	while (number >= 128) {
		p->bytes[p->nr++] = (u8)(number | 128);
		number >>= 7;
	}
	p->bytes[p->nr++] = (u8)number;
}

/* End the blocks before @source, and make room for one more pointer. */
static inline int part_advance(struct edge_part *p, u32 source)
{
	if (p->first == BLOCK_NONE)
		p->first = p->open = source;
	while (p->open < source) {
		int err = array_reserve(p->bytes, p->max, p->nr + 1);

		if (err)
			return err;
		p->bytes[p->nr++] = CODE_END;
		p->open++;
		if (p->open % EDGE_GROUP == 0)
			p->groups[p->open / EDGE_GROUP] = p->nr;
		p->last_target = BLOCK_NONE;
	}
	return array_reserve(p->bytes, p->max, p->nr + 2 * MAX_NUMBER);
}

int edges_add(struct edge_part *p, u32 source, u32 target, u64 offset)
{
	s64 delta = (s64)target - (s64)source;
	u64 zigzag = (u64)delta << 1 ^ (u64)(delta >> 63);
	int err = part_advance(p, source);

	if (err || (p->last_target == target && p->last_offset == offset))
		return err;
	p->last_target = target;
	p->last_offset = offset;
	put(p, zigzag << 1 | (offset != 0));
	if (offset)
		put(p, offset);
	return 0;
}

int edges_add_vptr(struct edge_part *p, u32 source, u64 offset_words)
{
	int err = part_advance(p, source);

	if (err)
		return err;
	put(p, CODE_VPTR);
	put(p, offset_words);
	return 0;
}

int edges_append(struct edge_store *e, struct edge_part *p)
{
	int err;

	if (p->first == BLOCK_NONE)
		return 0;
	err = advance(e, p->first);
	if (!err)
		err = need(e, p->nr);
	if (err)
		return err;
	memcpy(e->bytes + e->nr, p->bytes, p->nr);
	for (u32 group = p->first / EDGE_GROUP + 1; group <= p->open / EDGE_GROUP; group++)
		e->groups[group] += e->nr;
	e->nr += p->nr;
	e->open = p->open;
	p->nr = 0;
	p->first = p->last_target = BLOCK_NONE;
	return 0;
}

int edges_finish(struct edge_store *e, u32 nr_blocks)
{
	return advance(e, nr_blocks);
}

static inline u64 get(const u8 **at)
{
	u64 number = 0;
	int shift = 0;

	while (**at & 128) {
		number |= (u64)(**at & 127) << shift;
		shift += 7;
		(*at)++;
	}
	number |= (u64) * *at << shift;
	(*at)++;
	return number;
}

/* The number of zero bytes among the 8 bytes at @p. */
static inline u32 nr_zeros(const u8 *p)
{
	const u64 low = 0x7f7f7f7f7f7f7f7fULL;
	u64 v;

	memcpy(&v, p, sizeof(v));
	/* In the sum, the top bit of a byte says that a lower bit of it is set. */
	return (u32)__builtin_popcountll(~(((v & low) + low) | v | low));
}

void edge_begin(struct edge_iter *it, const struct edge_store *e, u32 source)
{
	const u8 *at = e->bytes + e->groups[source / EDGE_GROUP];

	const u8 *end = e->bytes + e->nr;
	u32 skip = source % EDGE_GROUP;

	/* Only an end has a zero byte, because offsets are never 0. Skip eight bytes at a time. */
	while (skip >= 8 && end - at >= 8) {
		skip -= nr_zeros(at);
		at += 8;
	}
	for (; skip; at++)
		skip -= *at == CODE_END;
	it->at = at;
	it->source = source;
}

bool edge_next(struct edge_iter *it)
{
	u64 code = get(&it->at);

	while (code == CODE_VPTR) {
		get(&it->at);
		code = get(&it->at);
	}
	if (code == CODE_END)
		return false;
	it->target = (u32)((s64)it->source + ((s64)(code >> 2) ^ -(s64)(code >> 1 & 1)));
	it->offset = code & 1 ? get(&it->at) : 0;
	return true;
}

void edge_skip(struct edge_iter *it)
{
	while (*it->at++ != CODE_END)
		;
}

bool edge_has_vptr(const struct edge_store *e, u32 block, u64 offset_words)
{
	struct edge_iter it;
	u64 code;

	edge_begin(&it, e, block);
	while ((code = get(&it.at)) != CODE_END) {
		u64 offset = code & 1 ? get(&it.at) : 0;

		if (code == CODE_VPTR && offset == offset_words)
			return true;
	}
	return false;
}

bool scan_is_start(const struct scan *s, u32 block, u64 offset)
{
	u32 flags = s->blocks[block].flags;

	if (!offset)
		return true;
	if (offset == s->word_size && (flags & BLOCK_NEWARRAY))
		return true;
	if (offset == 8 && (flags & BLOCK_LENGTH64))
		return true;
	if (offset == 3U * s->word_size && (flags & BLOCK_STDSTRING))
		return true;
	return (flags & BLOCK_VPTRS) && offset % s->word_size == 0 &&
	       edge_has_vptr(&s->edges, block, offset / s->word_size);
}

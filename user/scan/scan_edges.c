/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Pointers between blocks, in few bytes each. Found in one pass, and followed after the target was resumed. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "user/lib/array.h"
#include "user/lib/varint.h"
#include "user/scan/scan_shapes.h"

enum {
	NEAR_STEP = 8,
	NEAR_STEPS = 5, /* pointers behind fewer steps have codes of their own */
	NR_NEAR = IS_AGENT ? 0 : NEAR_STEPS,
	CODE_VPTR = 0,
	CODE_INTERIOR,
	CODE_NEAR,
	CODE_LINK = CODE_NEAR + NR_NEAR,
	CODE_TAIL,
	CODE_FIRST = IS_AGENT ? CODE_LINK : CODE_TAIL + 1, /* the least one of a pointer */
	LEN_LONG = 255,
	MAX_NUMBER = 1 + VARINT_MAX, /* bytes of the longest number */
	MAX_ENTRY = 3 * MAX_NUMBER,
	FIRST_BYTES = 64 << 10,
	NEAR_NONE = UINT8_MAX, /* the steps of the group are not known: each pointer says its own */
	NEAR_SHIFT = 56,
};

int edges_init(struct edge_store *e, u32 nr_blocks, u64 limit)
{
	*e = (struct edge_store){ .limit = limit, .nr_blocks = nr_blocks };
	e->groups = calloc(nr_blocks / EDGE_GROUP + 2, sizeof(*e->groups));
	/* An iterator looks at the length of the block behind the last one. */
	e->lens = calloc((size_t)nr_blocks + 1, 1);
	return e->groups && e->lens ? 0 : -ENOMEM;
}

void edges_fini(struct edge_store *e)
{
	free(e->bytes);
	free(e->groups);
	free(e->lens);
	free(e->longs);
	memset(e, 0, sizeof(*e));
}

u64 edges_memory(const struct edge_store *e)
{
	return e->nr + (e->nr_blocks / EDGE_GROUP + 2) * sizeof(*e->groups) + e->nr_blocks +
	       e->max_longs * sizeof(*e->longs);
}

static int scan_edges_grow(struct edge_store *e)
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

static int scan_edges_need(struct edge_store *e, u64 nr)
{
	int err = 0;

	while (e->capacity - e->nr < nr && !err)
		err = scan_edges_grow(e);
	return err;
}

/* End the open block of the store. */
static int end_open(struct edge_store *e)
{
	int err;

	if (e->open >= e->nr_blocks)
		return 0;
	e->lens[e->open] = e->open_len < LEN_LONG ? (u8)e->open_len : LEN_LONG;
	if (e->open_len < LEN_LONG)
		return 0;
	err = array_reserve(e->longs, e->max_longs, e->nr_longs + 1);
	if (!err)
		e->longs[e->nr_longs++] = (struct edge_long){ e->open, e->open_len };
	return err;
}

/* End the blocks before @source. Those between have no pointers. */
static int scan_edges_advance(struct edge_store *e, u32 source)
{
	int err = e->open < source ? end_open(e) : 0;

	if (err || e->open == source)
		return err;
	for (u32 group = e->open / EDGE_GROUP + 1; group <= source / EDGE_GROUP; group++)
		e->groups[group] = e->nr;
	e->open = source;
	e->open_len = 0;
	return 0;
}

void edge_part_init(struct edge_part *p, const struct edge_store *e)
{
	*p = (struct edge_part){ .groups = e->groups,
				 .lens = e->lens,
				 .nr_blocks = e->nr_blocks,
				 .near = NEAR_NONE,
				 .first = BLOCK_NONE,
				 .last_target = BLOCK_NONE };
}

void edge_part_fini(struct edge_part *p)
{
	free(p->bytes);
	free(p->longs);
	memset(p, 0, sizeof(*p));
}

static inline void scan_edges_put(struct edge_part *p, u64 number)
{
	u8 *to = p->bytes + p->nr;
	u32 more = (number >= 1 << 6) + (number >= 1 << 14);

	if (number < 1 << 22) {
		le32_put(to, (u32)number << 2 | more); /* there is room for all four */
		to += 1 + more;
	} else {
		*to++ = (u8)(number << 2 | 3);
		to = varint_put(to, number >> 6);
	}
	p->nr = (size_t)(to - p->bytes);
}

/* End the open block of the part. Others may have pointers of its first one, too. */
static int part_end_open(struct edge_part *p)
{
	size_t len = p->nr - p->open_at;
	int err;

	if (p->open == p->first) {
		p->first_end = p->nr;
		return 0;
	}
	p->lens[p->open] = len < LEN_LONG ? (u8)len : LEN_LONG;
	if (len < LEN_LONG)
		return 0;
	err = array_reserve(p->longs, p->max_longs, p->nr_longs + 1);
	if (!err)
		p->longs[p->nr_longs++] = (struct edge_long){ p->open, len };
	return err;
}

/* End the blocks before @source, and make room for one more pointer. */
static inline int part_advance(struct edge_part *p, u32 source)
{
	if (p->first == BLOCK_NONE) {
		p->first = p->open = source;
		p->open_at = 0;
	} else if (p->open < source) {
		int err = part_end_open(p);

		if (err)
			return err;
		if (!IS_AGENT && p->open / EDGE_GROUP != source / EDGE_GROUP)
			p->near = p->last_near;
		for (u32 group = p->open / EDGE_GROUP + 1; group <= source / EDGE_GROUP; group++)
			p->groups[group] = p->nr | (u64)(IS_AGENT ? 0 : p->near) << NEAR_SHIFT;
		p->open = source;
		p->open_at = p->nr;
		p->last_target = BLOCK_NONE;
	}
	return array_reserve(p->bytes, p->max, p->nr + MAX_ENTRY);
}

/* A pointer from @source to @target, as a number that is less than that of blocks, and CODE_FIRST. */
static u64 edge_code(const struct edge_part *p, u32 source, u32 target)
{
	s64 delta = (s64)target - (s64)source, nr = p->nr_blocks;

	delta += delta < -(nr / 2) ? nr : delta > nr / 2 ? -nr : 0;
	return CODE_FIRST + to_zigzag((u64)delta);
}

static int edges_add_marked(struct edge_part *p, u32 source, u32 target, u64 mark)
{
	int err = part_advance(p, source);

	if (err)
		return err;
	p->last_target = BLOCK_NONE;
	scan_edges_put(p, mark);
	scan_edges_put(p, edge_code(p, source, target));
	return 0;
}

int edges_add_link(struct edge_part *p, u32 source, u32 target)
{
	return edges_add_marked(p, source, target, CODE_LINK);
}

int edges_add_tail(struct edge_part *p, u32 source, u32 target)
{
	return edges_add_marked(p, source, target, CODE_TAIL);
}

int edges_add(struct edge_part *p, u32 source, u32 target, u64 offset, bool may_be_end)
{
	u64 steps = IS_AGENT ? 0 : offset / NEAR_STEP, code = edge_code(p, source, target);
	bool is_near = IS_AGENT ? !offset : !may_be_end && offset % NEAR_STEP == 0 && steps < NEAR_STEPS;
	int err = part_advance(p, source);

	if (err || (p->last_target == target && p->last_offset == offset))
		return err;
	p->last_target = may_be_end ? BLOCK_NONE : target;
	p->last_offset = offset;
	if (!is_near || (!IS_AGENT && steps != p->near))
		scan_edges_put(p, is_near ? CODE_NEAR + steps : CODE_INTERIOR);
	scan_edges_put(p, code);
	if (!is_near)
		scan_edges_put(p, offset);
	else if (!IS_AGENT)
		p->last_near = (u8)steps;
	return 0;
}

int edges_add_vptr(struct edge_part *p, u32 source, u64 offset_words)
{
	int err = part_advance(p, source);

	if (err)
		return err;
	scan_edges_put(p, CODE_VPTR);
	scan_edges_put(p, offset_words);
	return 0;
}

/* Take the lengths of @p over: of its first block, which may have begun before, and of its last one, which is open. */
static int append_lens(struct edge_store *e, const struct edge_part *p)
{
	int err;

	e->open_len += p->open == p->first ? p->nr : p->first_end;
	if (p->open == p->first)
		return 0;
	err = end_open(e);
	if (!err)
		err = array_reserve(e->longs, e->max_longs, e->nr_longs + p->nr_longs);
	if (err)
		return err;
	for (size_t i = 0; i < p->nr_longs; i++)
		e->longs[e->nr_longs++] = p->longs[i];
	e->open = p->open;
	e->open_len = p->nr - p->open_at;
	return 0;
}

int edges_append(struct edge_store *e, struct edge_part *p)
{
	int err;

	if (p->first == BLOCK_NONE)
		return 0;
	err = scan_edges_advance(e, p->first);
	if (!err)
		err = scan_edges_need(e, p->nr);
	if (err)
		return err;
	if (p->nr)
		memcpy(e->bytes + e->nr, p->bytes, p->nr);
	for (u32 group = p->first / EDGE_GROUP + 1; group <= p->open / EDGE_GROUP; group++)
		e->groups[group] += e->nr;
	err = append_lens(e, p);
	e->nr += p->nr;
	p->nr = p->nr_longs = 0;
	p->first = p->last_target = BLOCK_NONE;
	if (!IS_AGENT)
		p->near = NEAR_NONE;
	return err;
}

int edges_finish(struct edge_store *e, u32 nr_blocks)
{
	return scan_edges_advance(e, nr_blocks);
}

static inline u64 scan_edges_get(const u8 **at)
{
	const u8 *p = *at;
	u64 number = *p >> 2;

	switch (*p++ & 3) {
	case 0:
		break;
	case 1:
		number |= (u64)*p++ << 6;
		break;
	case 2:
		number |= (u64)le16_get(p) << 6;
		p += 2;
		break;
	default:
		for (u32 shift = 6; shift < 64; shift += 7) {
			number |= (u64)(*p & 127) << shift;
			if (*p++ < 128)
				break;
		}
	}
	*at = p;
	return number;
}

/* The bytes of @block. */
static u64 len_of(const struct edge_store *e, u32 block)
{
	size_t at;

	if (e->lens[block] < LEN_LONG)
		return e->lens[block];
	at = array_search(i, 0, e->nr_longs, e->longs[i].block < block);
	return e->longs[at].bytes;
}

/* The bytes of blocks [@block, @end) of a group. */
static u64 sum_lens(const struct edge_store *e, u32 block, u32 end)
{
	const u64 even = 0x00ff00ff00ff00ffULL, ones = 0x0101010101010101ULL;
	u64 sum = 0, v;

	for (; end - block >= sizeof(v); block += sizeof(v)) {
		memcpy(&v, e->lens + block, sizeof(v));
		if ((~v - ones) & v & ones << 7) /* one of them may be LEN_LONG */
			break;
		sum += (((v & even) + (v >> 8 & even)) * 0x0001000100010001ULL) >> 48;
	}
	for (; block < end; block++)
		sum += len_of(e, block);
	return sum;
}

/* The place of @group in the bytes, and the steps of its pointers that say none. */
static const u8 *edge_group(struct edge_iter *it, u32 group)
{
	u64 at = it->e->groups[group];

	if (!IS_AGENT)
		it->near = (u8)(at >> NEAR_SHIFT);
	return it->e->bytes + (at & EDGE_GROUP_AT);
}

void edge_begin(struct edge_iter *it, const struct edge_store *e, u32 source)
{
	u32 first = source / EDGE_GROUP * EDGE_GROUP;

	it->e = e;
	it->at = edge_group(it, source / EDGE_GROUP) + sum_lens(e, first, source);
	it->end = it->at + len_of(e, source);
	it->source = source;
}

void edge_next_source(struct edge_iter *it)
{
	it->source++;
	it->at = it->end;
	if (!IS_AGENT && it->source % EDGE_GROUP == 0)
		edge_group(it, it->source / EDGE_GROUP);
	it->end += len_of(it->e, it->source);
}

static bool edge_read(struct edge_iter *it)
{
	s64 target = it->source, nr = it->e->nr_blocks;
	u64 code;

	do {
		if (it->at == it->end)
			return false;
		code = scan_edges_get(&it->at);
	} while (code == CODE_VPTR && (scan_edges_get(&it->at), true));
	it->offset = IS_AGENT ? 0 : (u64)it->near * NEAR_STEP;
	it->may_be_end = it->is_link = false;
	if (!IS_AGENT)
		it->is_tail = false;
	if (code == CODE_INTERIOR) {
		code = scan_edges_get(&it->at);
		it->offset = scan_edges_get(&it->at);
		it->may_be_end = !IS_AGENT && !it->offset;
	} else if (!IS_AGENT && code < CODE_FIRST) {
		it->is_link = code == CODE_LINK;
		it->is_tail = code == CODE_TAIL;
		it->offset = code >= CODE_LINK ? 0 : (code - CODE_NEAR) * NEAR_STEP;
		code = scan_edges_get(&it->at);
	}
	target += (s64)from_zigzag(code - CODE_FIRST);
	it->target = (u32)(target < 0 ? target + nr : target >= nr ? target - nr : target);
	return true;
}

bool edge_next(struct edge_iter *it)
{
	const struct end_bits *ends = IS_AGENT ? NULL : it->e->ends;

	while (edge_read(it)) {
		if (!IS_AGENT && it->is_link && ends && end_bit(ends->links, it->source))
			continue;
		if (!IS_AGENT && it->is_tail && !(ends && end_bit(ends->tails, it->target)))
			continue;
		if (!it->may_be_end || !ends)
			return true;
		it->offset = end_bit(ends->may, it->target);
		if (!end_bit(ends->surely, it->target))
			return true;
	}
	return false;
}

bool edge_has_vptr(const struct edge_store *e, u32 block, u64 offset_words)
{
	struct edge_iter it;

	edge_begin(&it, e, block);
	while (it.at < it.end) {
		u64 code = scan_edges_get(&it.at);

		if (code == CODE_VPTR && scan_edges_get(&it.at) == offset_words)
			return true;
		if (code == CODE_INTERIOR) {
			scan_edges_get(&it.at);
			scan_edges_get(&it.at);
		} else if (!IS_AGENT && code && code < CODE_FIRST) {
			scan_edges_get(&it.at);
		}
	}
	return false;
}

bool scan_is_aligned_start(const struct scan *s, u32 block, u64 offset)
{
	taddr_t start = s->blocks[block].addr, at = start + offset, alignment = at & -at;

	return !IS_AGENT && s->books.may_begin_within && offset < alignment &&
	       alignment > 2U * s->word_size && s->books.may_begin_within(s->books.ctx, start);
}

bool scan_is_start(const struct scan *s, u32 block, u64 offset)
{
	u32 flags;

	if (!offset || (!IS_AGENT && s->behind && s->behind[block / 64] >> block % 64 & 1))
		return true;
	flags = s->blocks[block].flags;
	if (offset == s->word_size && (flags & BLOCK_NEWARRAY))
		return true;
	if (offset == 8 && (flags & BLOCK_LENGTH64))
		return true;
	if (offset == 3U * s->word_size && (flags & BLOCK_STDSTRING))
		return true;
	if ((flags & BLOCK_VPTRS) && offset % s->word_size == 0 &&
	    edge_has_vptr(&s->edges, block, offset / s->word_size))
		return true;
	return scan_is_aligned_start(s, block, offset) || (!IS_AGENT && scan_knows_itself(s, block, offset));
}

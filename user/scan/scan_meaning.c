/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The words around a pointer that is the end of a block, and maybe the start of the next: are they a container? */
#include <string.h>

#include "user/scan/scan_look.h"

enum {
	TABLE_GROUP = 16,   /* bytes that hashbrown and Abseil look at together; on some CPUs 8 */
	TABLE_MIN = 3,	    /* mask of hashbrown's smallest table */
	TABLE_HEADER = 32,  /* bytes before the pointer of Abseil's, at most */
	TABLE_PADDING = 24, /* bytes between its control bytes and its slots, at most */
};

/* The words around a candidate: those of the block that it lies in, or all. */
struct neighbours {
	const struct looker *r;
	taddr_t at, start, end;
};

static struct neighbours meaning_neighbours(const struct looker *r, const struct candidate *c)
{
	struct neighbours n = { r, r->base + (u64)c->at * 8, 0, UINT64_MAX };
	u32 block = (u32)WHERE_VALUE(c->where);

	if (WHERE_KIND(c->where) == WHERE_BLOCK) {
		n.start = r->s->blocks[block].addr;
		n.end = scan_block_end(r->s, block);
	}
	return n;
}

/* The word @steps behind the candidate; 0 if it belongs to another block, or cannot be read. */
static u64 meaning_neighbour(const struct neighbours *n, int steps)
{
	const struct looker *r = n->r;
	taddr_t addr = n->at + (u64)(s64)steps * 8;
	u64 value = 0;

	if (addr < n->start || addr + 8 > n->end)
		return 0;
	if (addr - r->base < (u64)r->nr_words * 8)
		memcpy(&value, r->data + (addr - r->base), sizeof(value));
	else if (snapshot_peek(r->facts->snap, addr, &value, sizeof(value)) != 0)
		return 0;
	return value & r->facts->mask;
}

/* Does a container with begin and end begin with the word @steps behind the candidate? */
static bool meaning_is_container(const struct neighbours *n, int steps)
{
	const struct scan *s = n->r->s;
	u32 block = scan_lookup(s, meaning_neighbour(n, steps));
	u64 begin, len, second, third;

	if (block == BLOCK_NONE)
		return false;
	begin = s->blocks[block].addr;
	len = scan_block_end(s, block) - begin;
	second = meaning_neighbour(n, steps + 1);
	third = meaning_neighbour(n, steps + 2);
	if (second - begin > len)
		return false;
	return third == begin + len || second == begin + len ||
	       (third < len && meaning_neighbour(n, steps + 3) == begin + len);
}

/*
 * May the word @steps behind the candidate, which looks as the last one of a container and points to @block, begin
 * something? Words behind it lead into the block: an array of [data, position] looks as [data, position, end]. Or the
 * next word is the end of the block, and does not begin a container. Without callers that can decide, the word must be
 * the last one of a block, or another container comes next.
 */
static bool meaning_may_begin(const struct neighbours *n, int steps, u32 block)
{
	const struct scan *s = n->r->s;
	u64 begin = s->blocks[block].addr, len = scan_block_end(s, block) - begin;
	u64 next = meaning_neighbour(n, steps + 1);
	bool is_close = next - begin == len;

	if (next - begin < len)
		return true;
	if (is_close && meaning_neighbour(n, steps + 2) == next)
		return true;
	if (!is_close && ((!IS_AGENT && s->books.stacks) || n->at + (u64)(steps + 1) * 8 >= n->end))
		return false;
	return !meaning_is_container(n, steps + 1);
}

/*
 * Only allocators without headers put a block where another one ends. Containers keep their begin, and a position,
 * beside their end: [begin, position, end] (vectors), [begin, end, position] (buffers, rings), [position, begin, end]
 * (queues), [position, end, begin] (streams), [begin, position, position, end] (arenas), [begin, position, count, end]
 * (iterators). In a table of pointers to blocks in a row no word lies two words behind the block before. A position at
 * the begin proves nothing: two ends of other containers, or of a list of one node, look so, and [begin, end, begin] is
 * a GHashTable with keys, hashes, and the keys as values; but not where a queue has its last position two words behind,
 * or a ring both of its positions. [begin, end] and [begin, count, end] may as well be two pointers.
 */
enum meaning looker_meaning_of(const struct looker *r, const struct candidate *c, u32 before_block)
{
	const struct scan *s = r->s;
	u64 begin, len, second, before, after;
	struct neighbours n;
	bool is_start;

	if (c->at == NO_INDEX)
		return MEANS_START;
	n = meaning_neighbours(r, c);
	begin = s->blocks[before_block].addr;
	len = c->value - begin;
	is_start = before_block + 1 < s->nr && s->blocks[before_block + 1].addr == c->value;
	second = meaning_neighbour(&n, -2);
	before = meaning_neighbour(&n, -1);
	after = meaning_neighbour(&n, 1);
	if ((second == begin && before - begin - 1 < len) ||
	    (before == begin && second - begin - 1 < len - 1) ||
	    (second - begin - 1 < len - 1 && (before - begin - 1 < len - 1 || before - 1 < len) &&
	     meaning_neighbour(&n, -3) == begin))
		return is_start && meaning_may_begin(&n, 0, before_block + 1) ? MEANS_EITHER : MEANS_END;
	if (before == begin ? second != begin && after - begin <= len &&
				      (after != begin || meaning_neighbour(&n, 2) - begin <= len)
			    : before - begin - 1 < len - 1 && after == begin)
		return is_start && meaning_may_begin(&n, 1, before_block + 1) ? MEANS_EITHER : MEANS_END;
	if (second == begin && before == begin && meaning_neighbour(&n, 2) - begin <= len &&
	    meaning_neighbour(&n, 3) == begin && meaning_neighbour(&n, 4) == c->value)
		return MEANS_END;
	return before == begin || (second == begin && before - 1 < len) ? MEANS_EITHER : MEANS_START;
}

static bool is_mask(u64 mask)
{
	return mask && (mask & (mask + 1)) == 0;
}

static inline u64 meaning_word_at(const struct looker *r, u32 at)
{
	u64 value;

	memcpy(&value, r->data + (size_t)8 * at, sizeof(value));
	return value;
}

static inline bool is_mask_of_rust(u64 mask)
{
	return mask >= TABLE_MIN && is_mask(mask);
}

/*
 * May @c be the pointer of a hash table? Of Rust, beside a mask; of Abseil, before a pointer further into @block. Few
 * pointers may be, and these words were just read.
 */
static inline bool may_be_table(const struct looker *r, const struct candidate *c, u32 block, u64 offset)
{
	u64 next;

	if (!c->at || c->at + 1 >= r->nr_words)
		return true;
	next = meaning_word_at(r, c->at + 1);
	if (offset % TABLE_GROUP == 0 &&
	    (is_mask_of_rust(next) || is_mask_of_rust(meaning_word_at(r, c->at - 1))))
		return true;
	return offset <= TABLE_HEADER &&
	       (next & r->facts->mask) - c->value < scan_block_end(r->s, block) - c->value;
}

/* Entries lie before the pointer, behind it a byte for each and 16 more. */
static bool is_table_of_rust(const struct looker *r, const struct candidate *c, u32 block, u64 offset)
{
	u64 need, slack = r->facts->slack, size = scan_block_size(r->s, block);
	struct neighbours n = meaning_neighbours(r, c);

	for (int at = -1; at <= 1; at += 2) {
		u64 mask = meaning_neighbour(&n, at), room = meaning_neighbour(&n, at + (at < 0 ? 2 : 1));
		u64 used = meaning_neighbour(&n, at + (at < 0 ? 3 : 2));

		need = offset + mask + 1 + TABLE_GROUP;
		if (is_mask_of_rust(mask) && mask < size && room <= mask && used <= mask - room &&
		    size >= need && size - need <= (slack ? slack + need / 4 : 0))
			return true;
	}
	return false;
}

/* The pointer leads to a byte for each slot and 15 more, which the slots follow. The next word points to these. */
static bool is_table_of_abseil(const struct looker *r, const struct candidate *c, u32 block)
{
	struct neighbours n = meaning_neighbours(r, c);
	u64 slots = meaning_neighbour(&n, 1), gap = slots - c->value;

	if (gap >= scan_block_end(r->s, block) - c->value)
		return false;
	for (int at = -2; at <= 3; at++) {
		u64 mask = at == 0 || at == 1 ? 0 : meaning_neighbour(&n, at);

		if (is_mask(mask) && mask < gap && gap - mask - TABLE_GROUP / 2 < TABLE_PADDING)
			return true;
	}
	return false;
}

bool looker_is_table(const struct looker *r, const struct candidate *c, u32 block, u64 offset)
{
	if (c->at == NO_INDEX || !(r->facts->heuristics & SCAN_TABLE) || !may_be_table(r, c, block, offset))
		return false;
	return (offset % TABLE_GROUP == 0 && is_table_of_rust(r, c, block, offset)) ||
	       (offset <= TABLE_HEADER && is_table_of_abseil(r, c, block));
}

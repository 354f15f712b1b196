/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Look at memory: which roots point to blocks, and which blocks point to which. Several threads do so at a time. */
#include <stdlib.h>
#include <string.h>

#include "user/heap/cover_map.h"
#include "user/lib/array.h"
#include "user/scan/scan_filter.h"
#include "user/scan/scan_look.h"
#include "user/scan/scan_shapes.h"

enum {
	MAX_VTABLE_READS = 100000, /* of one part; beyond that SCAN_MULTIPLE is switched off */
	VTABLE_WORDS = 4,
	MAX_FREE = 64,		/* free chunks between two blocks */
	LINK_REACH = 512 << 10, /* bytes that a free list may reach over */
	SHORT_TAIL = 1024,	/* look through so many bytes of a block before reading its head again */
};

void looker_init(struct looker *r, struct scan *s, const struct looker_facts *facts)
{
	r->s = s;
	r->facts = facts;
	edge_part_init(&r->edges, &s->edges);
}

void looker_fini(struct looker *r)
{
	edge_part_fini(&r->edges);
	free(r->hits);
	free(r->heads);
	free(r->tagged.of);
	free(r->aware.of);
	free(r->begins);
}

/* Note that a root points to @block. */
static int hit_root(struct looker *r, u32 block, u64 offset, u64 where)
{
	int err = array_reserve(r->hits, r->max_hits, r->nr_hits + 1);

	if (err)
		return err;
	r->hits[r->nr_hits] = (struct root_ref){ .where = where, .block = block };
	r->hits[r->nr_hits++].offset = offset < UINT32_MAX ? (u32)offset : UINT32_MAX;
	return 0;
}

/* The block of a candidate is among blocks [lo, hi), likely at guess. */
struct candidate_range {
	const struct scan_span *span;
	u32 lo, hi, guess;
};

/* new T[0] is only the number of elements, and the program points behind it. */
static bool is_empty_array(const struct looker *r, u32 block, u64 offset)
{
	u8 w = r->facts->snap->word_size;

	return offset == w && (r->facts->heuristics & SCAN_NEWARRAY) && scan_block_size(r->s, block) == w;
}

/* Is the word of @c the first one of its block, and may it be a link of a free list, to a block of the same page? */
static bool may_be_link(const struct looker *r, const struct candidate *c, u32 source, u32 target)
{
	const struct scan *s = r->s;
	taddr_t from = s->blocks[source].addr, to = s->blocks[target].addr;

	return s->books.may_begin_within && c->at != NO_INDEX && r->base + (u64)c->at * 8 == from &&
	       c->value == to && to - from + LINK_REACH < 2 * LINK_REACH &&
	       scan_block_size(s, source) == scan_block_size(s, target) &&
	       s->books.may_begin_within(s->books.ctx, from);
}

/*
 * May @c, whose word is the end of @before_block, mean that end? Then one of the two words before leads into that
 * block. Mostly none does, and looker_meaning_of() would look around for each pointer of a heap whose blocks touch.
 */
static inline bool may_mean_end(const struct looker *r, const struct candidate *c, u32 before_block)
{
	u64 begin = r->s->blocks[before_block].addr, len = c->value - begin, words[2];

	if (c->at == NO_INDEX || c->at < 2)
		return c->at != NO_INDEX;
	memcpy(words, r->data + (size_t)8 * (c->at - 2), sizeof(words));
	return (words[0] & r->facts->mask) - begin < len || (words[1] & r->facts->mask) - begin < len;
}

/*
 * @c is the end of @block, where no block begins. A header alone, with nothing behind it, is held so: scan_behind.c. A
 * header is a number of words, and no longer than a page.
 */
static int scan_look_tail(struct looker *r, const struct candidate *c, u32 block)
{
	u64 size = c->value - r->s->blocks[block].addr;

	if (size > SCAN_MAX_HEADER || size % 8 || (u32)WHERE_VALUE(c->where) == block)
		return 0;
	if (WHERE_KIND(c->where) != WHERE_BLOCK)
		return hit_root(r, block, ROOT_TAIL, c->where);
	return edges_add_tail(&r->edges, (u32)WHERE_VALUE(c->where), block);
}

static int scan_look_settle(struct looker *r, const struct candidate *c, const struct candidate_range *range)
{
	const struct scan *s = r->s;
	u32 block = scan_last_below(s, range->lo, range->hi, range->guess, c->value);
	u32 source = (u32)WHERE_VALUE(c->where);
	u64 offset = c->value - s->blocks[block].addr;
	bool is_outside = offset && c->value >= scan_block_end(s, block) && !is_empty_array(r, block, offset);
	enum meaning meaning = MEANS_START;
	bool may_be_end;

	if (is_outside && !scan_has_rules(s))
		return 0;
	if ((!offset || is_outside) && (IS_AGENT || is_outside || s->has_touching) &&
	    block - !offset != BLOCK_NONE && scan_block_end(s, block - !offset) == c->value &&
	    (IS_AGENT || may_mean_end(r, c, block - !offset)))
		meaning = looker_meaning_of(r, c, block - !offset);
	may_be_end = !IS_AGENT && meaning == MEANS_EITHER;
	if (!IS_AGENT)
		r->has_ends |= meaning != MEANS_START && !offset;
	if (!IS_AGENT && (meaning == MEANS_END || (is_outside && may_be_end)))
		return looker_note_begin(r, block - !offset, is_outside);
	if (is_outside || meaning == MEANS_END)
		return !IS_AGENT && scan_block_end(s, block) == c->value ? scan_look_tail(r, c, block) : 0;
	if (!IS_AGENT && offset && looker_is_table(r, c, block, offset))
		offset = 0;
	if (WHERE_KIND(c->where) != WHERE_BLOCK)
		return hit_root(r, block, may_be_end ? ROOT_END : offset, c->where);
	if (source == block)
		return IS_AGENT ? 0 : looker_note_self(r, c, block, offset);
	if (!IS_AGENT && !may_be_end && may_be_link(r, c, source, block)) {
		r->has_links = true;
		return edges_add_link(&r->edges, source, block);
	}
	return edges_add(&r->edges, source, block, offset, may_be_end);
}

/*
 * Find the blocks of the candidates. In three passes, so that cache misses overlap, because they cost more than
 * everything else here.
 */
static int scan_look_flush(struct looker *r)
{
	const struct scan *s = r->s;
	const struct scan_span *span = s->spans;
	struct candidate_range ranges[NR_CANDIDATES];
	size_t nr = 0;
	int err = 0;

	for (size_t i = 0; i < r->nr; i++) {
		taddr_t p = r->candidates[i].value;

		if (p < span->start || p >= span->end) {
			const struct scan_span *found = scan_span_find(s, p);

			if (!found)
				continue;
			span = found;
		}
		ranges[nr].span = span;
		__builtin_prefetch(&s->buckets[scan_bucket(span, p)]);
		r->candidates[nr++] = r->candidates[i];
	}
	for (size_t i = 0; i < nr; i++) {
		taddr_t p = r->candidates[i].value;
		const u32 *bucket = s->buckets + scan_bucket(ranges[i].span, p);

		ranges[i].lo = bucket[0];
		ranges[i].hi = bucket[1];
		ranges[i].guess = scan_guess(ranges[i].span, bucket[0], bucket[1], p);
		__builtin_prefetch(&s->blocks[ranges[i].guess]);
		if (!IS_AGENT && s->has_touching && ranges[i].guess)
			__builtin_prefetch(&s->blocks[ranges[i].guess - 1]);
	}
	for (size_t i = 0; i < nr && !err; i++)
		err = scan_look_settle(r, &r->candidates[i], &ranges[i]);
	r->nr = 0;
	return err;
}

static inline u64 load_word(const struct looker *r, const u8 *p)
{
	u64 value = 0;
	u8 w = r->facts->snap->word_size;

	if (r->facts->is_native) {
		memcpy(&value, p, 8);
		return value;
	}
	for (u8 i = 0; i < w; i++)
		value = value << 8 | p[r->facts->snap->is_big_endian ? i : w - 1 - i];
	return value;
}

/* The common case of take_words(): take the words that scan_filter() found. */
static int take_native(struct looker *r, const u8 *p, size_t nr, u64 where, u64 step)
{
	u32 from = (u32)((size_t)(p - r->data) / 8), to = from + (u32)nr;

	while (r->next_found < r->nr_found && r->found[r->next_found] < from)
		r->next_found++;
	while (r->next_found < r->nr_found && r->found[r->next_found] < to) {
		u32 at = r->found[r->next_found++];
		struct candidate *c = &r->candidates[r->nr];
		int err;

		memcpy(&c->value, r->data + (size_t)8 * at, 8);
		c->value &= r->facts->mask;
		c->where = where + step * (at - from);
		c->at = at;
		if (!IS_AGENT && c->value - r->s->lo >= r->s->hi - r->s->lo)
			err = looker_note_tagged(r, c->value);
		else
			err = ++r->nr == NR_CANDIDATES ? scan_look_flush(r) : 0;
		if (err)
			return err;
	}
	return 0;
}

/* Take words of any size and byte order, also unaligned ones. */
static int take_any(struct looker *r, const u8 *p, size_t len, size_t stride, u64 where, u64 step)
{
	const struct scan *s = r->s;
	u64 length = s->hi - s->lo;

	for (size_t at = 0; at + r->facts->snap->word_size <= len; at += stride, where += step) {
		u64 value = load_word(r, p + at) & r->facts->mask;
		int err;

		if (value - s->lo >= length)
			continue;
		r->candidates[r->nr++] = (struct candidate){ value, where, NO_INDEX };
		err = r->nr == NR_CANDIDATES ? scan_look_flush(r) : 0;
		if (err)
			return err;
	}
	return 0;
}

/* With want_unaligned: take pointers that begin in one chunk and end in the next. */
static int take_straddling(struct looker *r, taddr_t end, u64 where)
{
	u8 w = r->facts->snap->word_size, bytes[16];

	if (snapshot_peek(r->facts->snap, end - (w - 1), bytes, 2U * (w - 1)) != 0)
		return 0;
	return take_any(r, bytes, 2U * (w - 1), 1, where, 0);
}

/* Take the words at [addr, addr + len), whose bytes are @p. @block = BLOCK_NONE: they are roots. */
static int take_words(struct looker *r, taddr_t addr, const u8 *p, size_t len, u32 block)
{
	u8 w = r->facts->snap->word_size;
	bool is_root = block == BLOCK_NONE;
	u64 where = is_root ? WHERE(WHERE_MEMORY, addr) : WHERE(WHERE_BLOCK, (u64)block);
	size_t stride = r->s->options.want_unaligned ? 1 : w;
	size_t skip =
		-addr &
		(w - 1U); /* no division, which would take longer than all else here; w is a power of two */

	r->scanned_bytes += len;
	if (stride == w) {
		if (len < skip + w)
			return 0;
		p += skip;
		len = (len - skip) & ~(w - 1ULL);
		if (is_root)
			where += skip;
	}
	if (r->facts->is_native)
		return take_native(r, p, len / 8, where, is_root ? 8 : 0);
	return take_any(r, p, len, stride, where, is_root ? stride : 0);
}

/* Like take_words(), but without dead ranges. */
static int scan_look_take(struct looker *r, taddr_t addr, const u8 *p, size_t len, u32 block)
{
	const struct region_list *list = r->facts->regions;
	taddr_t end = addr + len, at = addr;
	int err = 0;

	while (r->dead < list->nr_dead && list->dead[r->dead].end <= addr)
		r->dead++;
	for (size_t i = r->dead; i < list->nr_dead && list->dead[i].start < end && !err; i++) {
		const struct dead_range *dead = &list->dead[i];

		if (dead->start > at)
			err = take_words(r, at, p + (at - addr), dead->start - at, block);
		at = dead->end > at ? dead->end : at;
	}
	return err || at >= end ? err : take_words(r, at, p + (at - addr), end - at, block);
}

/* True if a virtual table is at @addr: addresses of functions, behind a small offset and the type. */
static bool check_vtable(struct looker *r, taddr_t addr)
{
	u8 w = r->facts->snap->word_size, bytes[(VTABLE_WORDS + 2) * 8];
	size_t len = (VTABLE_WORDS + 2U) * w;
	const struct snapshot_map *map = snapshot_map_find(r->facts->snap, addr);
	u64 top;

	if (!map || !map->ino || !map->is_readable || addr - map->start < 2U * w ||
	    map->end - addr < (u64)VTABLE_WORDS * w)
		return false;
	if (r->nr_vtable_reads++ > MAX_VTABLE_READS ||
	    snapshot_peek(r->facts->snap, addr - 2U * w, bytes, len) != 0)
		return false;
	top = load_word(r, bytes); /* distance to the whole object: 0, or small and negative */
	if (w == 4)
		top = (u64)(s64)(s32)top;
	if (top && top < (u64) - (1 << 24))
		return false;
	for (size_t i = 0; i < VTABLE_WORDS; i++) {
		u64 value = load_word(r, bytes + (2 + i) * w);

		map = value ? snapshot_map_find(r->facts->snap, value) : NULL;
		if (value)
			return map && map->is_executable;
	}
	return false;
}

static inline bool may_be_vtable(const struct looker_facts *facts, taddr_t addr)
{
	bool is_file = false;

	for (u32 i = 0; i < facts->nr_files && !is_file; i++)
		is_file = addr - facts->files[i].start < facts->files[i].end - facts->files[i].start;
	return is_file && (addr & (facts->snap->word_size - 1U)) == 0;
}

static bool is_vtable(struct looker *r, taddr_t addr)
{
	size_t slot = (addr >> 3) % NR_VTABLES;

	if (!may_be_vtable(r->facts, addr))
		return false;
	if (r->vtables[slot].addr != addr) {
		r->vtables[slot].is_vtable = check_vtable(r, addr);
		r->vtables[slot].addr = addr;
	}
	return r->vtables[slot].is_vtable;
}

/* The flags (enum block_flag) that the first words of @block give it. @len bytes of it are at @p. */
static u32 head_flags(struct looker *r, u32 block, const u8 *p, size_t len)
{
	u64 size = scan_block_size(r->s, block), first, second;
	u32 heuristics = r->facts->heuristics, slack = r->facts->slack, flags = 0;
	u8 w = r->facts->snap->word_size;

	if (size < w || len < w)
		return 0;
	first = load_word(r, p);
	if (size == w)
		return (heuristics & SCAN_NEWARRAY) && !first ? BLOCK_NEWARRAY : 0;
	if (len < 2U * w || (len < 8 && size >= 8))
		return 0;
	second = load_word(r, p + w);
	if ((heuristics & SCAN_NEWARRAY) && first && first < size && (size - w) % first <= slack)
		flags |= BLOCK_NEWARRAY;
	if ((heuristics & SCAN_STDSTRING) && first <= second && second < size &&
	    size - second - 3U * w - 1 <= slack)
		flags |= BLOCK_STDSTRING;
	if ((heuristics & SCAN_MULTIPLE) && is_vtable(r, first & r->facts->mask))
		flags |= BLOCK_VPTRS;
	if (!(heuristics & SCAN_LENGTH64) || size <= 8)
		return flags;
	if (w == 4)
		first = r->facts->snap->is_big_endian ? first << 32 | second : second << 32 | first;
	return size - 8 - first <= slack ? flags | BLOCK_LENGTH64 : flags;
}

static int look_at_head(struct looker *r, u32 block, const u8 *p, size_t len)
{
	u32 flags = head_flags(r, block, p, len);
	int err;

	r->vptrs_of = flags & BLOCK_VPTRS ? block : BLOCK_NONE;
	if (!flags)
		return 0;
	err = array_reserve(r->heads, r->max_heads, r->nr_heads + 1);
	if (err)
		return err;
	r->heads[r->nr_heads++] = (struct block_head){ block, flags };
	return 0;
}

/* Another thread looks at the head of @block. Read the head here too if the tail at @p needs its flags. */
static void look_back(struct looker *r, u32 block, const u8 *p, size_t len)
{
	u8 bytes[16], w = r->facts->snap->word_size;
	bool is_any = len > SHORT_TAIL;

	r->vptrs_of = BLOCK_NONE;
	if (!(r->facts->heuristics & SCAN_MULTIPLE))
		return;
	for (size_t at = 0; at + w <= len && !is_any; at += w)
		is_any = may_be_vtable(r->facts, load_word(r, p + at) & r->facts->mask);
	if (is_any && snapshot_peek(r->facts->snap, r->s->blocks[block].addr, bytes, 2U * w) == 0 &&
	    (head_flags(r, block, bytes, 2U * w) & BLOCK_VPTRS))
		r->vptrs_of = block;
}

/* Note further addresses of virtual tables in a block that begins with one. */
static int note_vptrs(struct looker *r, u32 block, taddr_t addr, const u8 *p, size_t len)
{
	u8 w = r->facts->snap->word_size;
	u64 offset = addr - r->s->blocks[block].addr;
	int err = 0;

	if (offset % w || r->s->blocks[block].addr % w)
		return 0;
	for (size_t at = offset ? 0 : w; at + w <= len && !err; at += w) {
		if (!is_vtable(r, load_word(r, p + at) & r->facts->mask))
			continue;
		err = scan_look_flush(r); /* pointers of earlier blocks come first */
		if (!err)
			err = edges_add_vptr(&r->edges, block, (offset + at) / w);
	}
	return err;
}

/* The word at @offset of @block is the class of a GObject, which begins there: its address counts as a start. */
static int note_class(struct looker *r, u32 block, u64 offset)
{
	u8 w = r->facts->snap->word_size;
	int err = array_reserve(r->heads, r->max_heads, r->nr_heads + 1);

	if (!err)
		err = scan_look_flush(r); /* pointers of earlier blocks come first */
	if (err)
		return err;
	r->heads[r->nr_heads++] = (struct block_head){ block, BLOCK_VPTRS };
	return edges_add_vptr(&r->edges, block, offset / w);
}

/* Look for objects of GLib in @block, behind private data, whose size is a multiple of two words. */
static int note_classes(struct looker *r, u32 block, taddr_t addr, const u8 *p, size_t len)
{
	const struct glib_facts *glib = &r->facts->glib;
	size_t step = 2U * r->facts->snap->word_size;
	u64 start = r->s->blocks[block].addr, offset = addr - start;
	int err = 0;

	if (!offset && glib_is_fundamental(glib, r->s, block))
		err = note_class(r, block, step / 2);
	offset = offset ? (offset + step - 1) / step * step : step;
	for (; offset < GLIB_MAX_PRIVATE && start + offset + step <= addr + len && !err; offset += step) {
		u64 word = load_word(r, p + (start + offset - addr)) & r->facts->mask;

		if (glib_is_class(glib, r->s, word))
			err = note_class(r, block, offset);
	}
	return err;
}

/* Take pairs of pointers in 32 bits, where the two together do not make a pointer. */
static int take_packed(struct looker *r, u32 block, const u8 *p, size_t len)
{
	const struct scan *s = r->s;
	u64 length = s->hi - s->lo;
	int err = 0;

	for (size_t at = 0; at + 4 <= len && !err; at += 4) {
		u32 value;

		memcpy(&value, p + at, sizeof(value));
		if (value - s->lo >= length)
			continue;
		r->candidates[r->nr++] =
			(struct candidate){ value, WHERE(WHERE_BLOCK, (u64)block), NO_INDEX };
		err = r->nr == NR_CANDIDATES ? scan_look_flush(r) : 0;
	}
	return err;
}

/* Look at bytes [addr, addr + len) of @block. @is_first: the position was set just before. */
static int look_at_block(struct looker *r, u32 block, taddr_t addr, const u8 *p, size_t len, bool is_first)
{
	int err = 0;

	if (addr == r->s->blocks[block].addr)
		err = r->facts->heuristics ? look_at_head(r, block, p, len) : 0;
	else if (is_first && r->vptrs_of != block)
		look_back(r, block, p, len);
	if (!err && r->vptrs_of == block)
		err = note_vptrs(r, block, addr, p, len);
	if (!err && r->facts->glib.nr_classes)
		err = note_classes(r, block, addr, p, len);
	if (!err && r->facts->glib.has_packed && glib_is_packed(r->s, block, r->facts->slack))
		err = take_packed(r, block, p, len);
	return err ? err : scan_look_take(r, addr, p, len, block);
}

/* True if the stack or thread pointer of a thread lies in the hole between two blocks, in @region. */
static bool has_point(const struct looker *r, const struct scan_region *region)
{
	const struct scan *s = r->s;
	taddr_t before = r->cur ? scan_block_end(s, r->cur - 1) : 0;
	taddr_t behind = r->cur < s->nr ? s->blocks[r->cur].addr : UINT64_MAX;

	return region_has_point(r->facts->regions, before > region->start ? before : region->start,
				behind < region->end ? behind : region->end);
}

/* Holes in @region have no root: remember that, because most blocks have one before them. */
static void note_quiet(struct looker *r, const struct scan_region *region)
{
	if (region->kind == REGION_HEAP && region_has_point(r->facts->regions, region->start, region->end))
		return;
	r->quiet_start = region->start;
	r->quiet_end = region->end;
}

/* Reduce [*start, *end), a part of a hole in @region, to the bytes that are roots. False if none is. */
static bool region_roots(const struct looker *r, const struct scan_region *region, taddr_t *start,
			 taddr_t *end)
{
	const struct scan *s = r->s;
	taddr_t before = r->cur ? scan_block_end(s, r->cur - 1) : 0;
	taddr_t behind = r->cur < s->nr ? s->blocks[r->cur].addr : UINT64_MAX;
	u64 in_page = r->facts->page - 1;

	if (region->kind == REGION_NEVER)
		return false;
	if (has_point(r, region) || region->kind == REGION_COVERED)
		return true;
	if (region->kind == REGION_HEAP)
		return false;
	if (before > (*start & ~in_page))
		*start += -*start & in_page;
	if (behind < *end + (-*end & in_page))
		*end &= ~in_page;
	return *start < *end;
}

/* Take [addr, end) except the @nr ranges of @without. */
static int take_except(struct looker *r, taddr_t addr, taddr_t end, const u8 *p,
		       const struct dead_range *without, u32 nr)
{
	taddr_t at = addr;
	int err = 0;

	for (u32 i = 0; i < nr && without[i].start < end && !err; i++) {
		if (without[i].end <= at)
			continue;
		if (without[i].start > at)
			err = scan_look_take(r, at, p + (at - addr), without[i].start - at, BLOCK_NONE);
		at = without[i].end;
	}
	return err || at >= end ? err : scan_look_take(r, at, p + (at - addr), end - at, BLOCK_NONE);
}

/*
 * Find the ranges of the hole [addr, end) that glibc's chunks prove unused: the rest of the chunk of the block before,
 * and free chunks. The hole must be complete: from the block before, whose chunk may reach 8 bytes into it, to the next
 * block.
 */
static u32 find_free(const struct looker *r, const struct scan_region *region, taddr_t addr, taddr_t end,
		     const u8 *p, struct dead_range *free_ranges)
{
	const struct scan *s = r->s;
	s32 nr;

	if (!region->is_glibc || !r->facts->is_native || r->chunk + 8 < addr || end - addr < 16 ||
	    r->chunk > end - 16 || r->cur == s->nr || s->blocks[r->cur].addr != end)
		return 0;
	nr = chunk_find_free(r->chunk, end - 16, p + (s64)(r->chunk - addr), free_ranges + 1, MAX_FREE - 1);
	if (nr < 0)
		return 0;
	free_ranges[0] = (struct dead_range){ addr, r->chunk + 8 };
	return (u32)nr + 1;
}

/* The end of the part of [addr, end) that is in one slot or in no page. *@page is NULL if it is in none. */
static taddr_t slot_stop(const struct region_list *list, taddr_t addr, taddr_t end,
			 const struct slot_page **page)
{
	size_t i = array_search(k, 0, list->nr_pages, list->pages[k].end <= addr);
	const struct slot_page *p = list->pages + i;
	taddr_t stop = end;

	*page = i < list->nr_pages && addr >= p->first ? p : NULL;
	if (*page)
		stop = addr + p->slot - (addr - p->first) % p->slot;
	else if (i < list->nr_pages)
		stop = p->first;
	return stop < end ? stop : end;
}

/* Has a block begun in the slot of [addr, end) since the attach? Then no older block lies there. */
static bool is_used_slot(const struct cover_map *cover, const struct slot_page *page, taddr_t addr)
{
	taddr_t start = addr - (addr - page->first) % page->slot, end = start + page->slot;
	bool is_covered = false;

	/* A granule is covered by the block in which it begins. */
	start = (start + COVER_GRANULE - 1) / COVER_GRANULE * COVER_GRANULE;
	if (start >= end)
		return false;
	return cover_map_run(cover, start, end, &is_covered) < end || is_covered;
}

/* Take the bytes of [addr, end), which no block has covered, but for those of slots that have had one. */
static int take_slots(struct looker *r, taddr_t addr, taddr_t end, const u8 *p,
		      const struct dead_range *without, u32 nr)
{
	const struct cover_map *cover = r->s->cover ? r->s->cover : r->s->freed;
	taddr_t from = addr, at = addr;
	int err = 0;

	while (!IS_AGENT && r->facts->regions->nr_pages && at < end && !err) {
		const struct slot_page *page;
		taddr_t stop = slot_stop(r->facts->regions, at, end, &page);

		if (page && is_used_slot(cover, page, at)) {
			err = take_except(r, from, at, p + (from - addr), without, nr);
			from = stop;
		}
		at = stop;
	}
	return err ? err : take_except(r, from, end, p + (from - addr), without, nr);
}

/* Take the bytes of [addr, end) that no block has ever covered. The memory belongs to the allocator. */
static int look_at_uncovered(struct looker *r, const struct scan_region *region, taddr_t addr, taddr_t end,
			     const u8 *p)
{
	struct dead_range free_ranges[MAX_FREE];
	u32 nr_free = find_free(r, region, addr, end, p, free_ranges);
	const struct cover_map *cover = r->s->cover ? r->s->cover : r->s->freed;
	taddr_t at = addr;
	int err = 0;

	while (at < end && !err) {
		bool is_covered;
		taddr_t next = cover_map_run(cover, at, end, &is_covered);

		if (!is_covered)
			err = take_slots(r, at, next, p + (at - addr), free_ranges, nr_free);
		at = next;
	}
	return err;
}

/* Look at [addr, end) outside blocks. The bytes are at @p. */
static int look_at_hole(struct looker *r, taddr_t addr, taddr_t end, const u8 *p)
{
	taddr_t base = addr;
	int err = 0;

	while (addr < end && !err) {
		const struct scan_region *region = r->facts->regions->regions + r->region;
		taddr_t start = addr, stop = end;

		while (r->region < r->facts->regions->nr && region->end <= addr)
			region = r->facts->regions->regions + ++r->region;
		if (r->region == r->facts->regions->nr || region->start >= end) {
			err = scan_look_take(r, start, p + (start - base), stop - start, BLOCK_NONE);
			break;
		}
		if (region->start > addr) {
			stop = region->start;
			err = scan_look_take(r, start, p + (start - base), stop - start, BLOCK_NONE);
			addr = stop;
			continue;
		}
		addr = stop = region->end < end ? region->end : end;
		if (region->kind == REGION_NEVER || region->kind == REGION_HEAP)
			note_quiet(r, region);
		if (!region_roots(r, region, &start, &stop))
			continue;
		if ((region->kind == REGION_COVERED || region->has_freed) && !has_point(r, region))
			err = look_at_uncovered(r, region, start, stop, p + (start - base));
		else
			err = scan_look_take(r, start, p + (start - base), stop - start, BLOCK_NONE);
	}
	return err;
}

/* Index of the first of @nr ranges by address that ends above @addr. @size: bytes from one end to the next. */
static size_t first_above(const taddr_t *ends, size_t nr, size_t size, taddr_t addr)
{
	return array_search(i, 0, nr, *(const taddr_t *)((const u8 *)ends + i * size) <= addr);
}

/* Set the position to @addr. */
static void scan_look_seek(struct looker *r, taddr_t addr)
{
	const struct region_list *list = r->facts->regions;
	const struct scan *s = r->s;
	u8 header[8];

	r->cur = scan_lower_bound(s, addr);
	if (r->cur && scan_block_end(s, r->cur - 1) > addr)
		r->cur--;
	r->region = list->nr ? first_above(&list->regions[0].end, list->nr, sizeof(*list->regions), addr) : 0;
	r->dead =
		list->nr_dead ? first_above(&list->dead[0].end, list->nr_dead, sizeof(*list->dead), addr) : 0;
	r->is_sought = true;
	r->vptrs_of = BLOCK_NONE;
	r->chunk = 0;
	/* The header of the block that contains @addr, or ends there. */
	if (s->cover && r->cur < s->nr && s->blocks[r->cur].addr < addr &&
	    snapshot_peek(r->facts->snap, s->blocks[r->cur].addr - sizeof(header), header, sizeof(header)) ==
		    0)
		r->chunk = chunk_end(s->blocks[r->cur].addr, header + sizeof(header));
}

/* Look at [addr, *stop) as far as it lies in block cur, or before it. *stop is set to the end of that. */
static int look_at_next(struct looker *r, const struct snapshot_chunk *chunk, taddr_t addr, taddr_t *stop)
{
	const struct scan *s = r->s;
	const u8 *p = chunk->data + (addr - chunk->addr);
	bool is_sought = r->is_sought;

	r->is_sought = false;
	if (r->cur == s->nr || s->blocks[r->cur].addr > addr) {
		if (r->cur < s->nr && s->blocks[r->cur].addr < *stop)
			*stop = s->blocks[r->cur].addr;
		if (addr >= r->quiet_start && *stop <= r->quiet_end)
			return 0;
		return look_at_hole(r, addr, *stop, p);
	}
	if (scan_block_end(s, r->cur) < *stop)
		*stop = scan_block_end(s, r->cur);
	if (addr == s->blocks[r->cur].addr)
		r->chunk = s->cover && addr - chunk->addr >= 8 ? chunk_end(addr, p) : 0;
	return look_at_block(r, r->cur, addr, p, *stop - addr, is_sought);
}

int looker_look(struct looker *r, const struct snapshot_chunk *chunk)
{
	const struct scan *s = r->s;
	/* A word with marks in its upper bits passes, too. */
	u64 mask = !scan_has_rules(s) || s->hi > SCAN_ADDRESS ? UINT64_MAX : SCAN_ADDRESS;
	const struct scan_filter filter = { r->facts->mask & mask, s->lo, s->hi - s->lo };
	taddr_t addr = chunk->addr, end = chunk->addr + chunk->len;
	int err = 0;

	if (!r->is_begun || r->at != addr)
		scan_look_seek(r, addr);
	r->is_begun = true;
	r->at = end;
	r->data = chunk->data;
	r->base = addr;
	r->nr_words = (u32)(chunk->len / 8);
	r->next_found = 0;
	if (r->facts->is_native)
		r->nr_found = scan_filter(chunk->data, (u32)(chunk->len / 8), &filter, r->found);
	if (s->options.want_unaligned && addr > r->facts->snap->maps[chunk->map].start)
		err = take_straddling(r, addr, WHERE(WHERE_MEMORY, addr));
	for (taddr_t stop; addr < end && !err; addr = stop) {
		while (r->cur < s->nr && scan_block_end(s, r->cur) <= addr)
			r->cur++;
		stop = end;
		err = look_at_next(r, chunk, addr, &stop);
	}
	return err ? err : scan_look_flush(r);
}

int looker_words(struct looker *r)
{
	const struct snapshot *snap = r->facts->snap;
	const struct region_list *regions = r->facts->regions;
	const struct scan *s = r->s;

	for (size_t i = 0; i < snap->nr_words; i++) {
		struct candidate c = { .value = snap->words[i].value & r->facts->mask,
				       .where = WHERE(WHERE_WORD, i),
				       .at = NO_INDEX };
		int err;

		if (c.value - s->lo >= s->hi - s->lo)
			continue;
		r->candidates[r->nr++] = c;
		err = r->nr == NR_CANDIDATES ? scan_look_flush(r) : 0;
		if (err)
			return err;
	}
	for (size_t i = 0; i < regions->nr_points; i++) {
		u32 block = scan_lookup(s, regions->points[i].addr);
		int err = block == BLOCK_NONE
				  ? 0
				  : hit_root(r, block, 0, WHERE(WHERE_WORD, (u64)regions->points[i].word));

		if (err)
			return err;
	}
	return scan_look_flush(r);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One pass over the memory of the moment: which roots point to blocks, and which blocks to which. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "user/cover_map.h"
#include "user/lib/cleanup.h"
#include "user/scan_regions.h"
#include "user/scan_state.h"

enum {
	NR_CANDIDATES = 1024,
	MAX_TAKEN = 512,	   /* words taken between two looks at the room */
	NR_VTABLES = 4096,	   /* remembered answers, a power of two */
	MAX_VTABLE_READS = 200000, /* then the heuristic for multiple inheritance ends */
	VTABLE_WORDS = 4,
	MIN_ROOT_REFS = 65536,
	MAX_FREE = 64, /* free chunks between two blocks */
};

/* A word that may be a pointer to a block, and where it was found: blocks by index. */
struct candidate {
	u64 value;
	u64 where;
};

struct reader {
	struct scan *s;
	struct snapshot *snap;
	struct region_list regions;
	size_t region; /* the first that ends above the position */
	taddr_t chunk; /* end of the glibc chunk of the block before cur; 0 = not known */
	size_t dead;   /* the first dead range that ends above it */
	u32 cur;       /* the first block that does */
	u64 page;      /* bytes */
	u64 mask;
	u32 heuristics;
	bool is_native;		  /* words of 8 bytes in our byte order, aligned */
	taddr_t file_lo, file_hi; /* mapped files lie between */
	u32 nr_vtable_reads;
	struct candidate candidates[NR_CANDIDATES];
	size_t nr;
	struct {
		taddr_t addr;
		bool is_vtable;
	} vtables[NR_VTABLES];
};

/* A root points to @block. */
static int hit_root(struct reader *r, u32 block, u64 offset, u64 where)
{
	struct scan *s = r->s;
	struct scan_block *b = &s->blocks[block];
	struct root_ref *ref;

	if (b->flags & BLOCK_ROOT)
		return 0;
	if (s->nr_roots == s->capacity_roots) {
		size_t larger = s->capacity_roots ? s->capacity_roots * 2 : 256;
		struct root_ref *roots;

		/* Beyond this it counts, but no chain can name it and no heuristic lifts it. */
		if (larger > s->nr / 4 + MIN_ROOT_REFS) {
			b->flags |= offset ? BLOCK_SEED : BLOCK_ROOT;
			return 0;
		}
		roots = realloc(s->roots, larger * sizeof(*roots));
		if (!roots)
			return -ENOMEM;
		s->roots = roots;
		s->capacity_roots = larger;
	}
	ref = &s->roots[s->nr_roots++];
	*ref = (struct root_ref){ .where = where, .block = block };
	ref->offset = offset < UINT32_MAX ? (u32)offset : UINT32_MAX;
	b->flags |= offset ? BLOCK_SEED : BLOCK_ROOT;
	return 0;
}

/* Where a candidate is looked up: blocks [lo, hi), likely at guess. */
struct range {
	const struct scan_span *span;
	u32 lo, hi, guess;
};

static int settle(struct reader *r, const struct candidate *c, const struct range *range)
{
	struct scan *s = r->s;
	u32 block = scan_last_below(s, range->lo, range->hi, range->guess, c->value);
	u32 source = (u32)WHERE_VALUE(c->where);
	u64 offset = c->value - s->blocks[block].addr;

	if (offset && c->value >= scan_block_end(s, block))
		return 0;
	if (WHERE_KIND(c->where) != WHERE_BLOCK)
		return hit_root(r, block, offset, c->where);
	return source == block ? 0 : edges_add(&s->edges, source, block, offset);
}

/*
 * Find the blocks of the candidates. In three passes, so that the misses of the cache overlap:
 * they cost more than everything else here.
 */
static int flush(struct reader *r)
{
	const struct scan *s = r->s;
	const struct scan_span *span = s->spans;
	struct range ranges[NR_CANDIDATES];
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
	}
	for (size_t i = 0; i < nr && !err; i++)
		err = settle(r, &r->candidates[i], &ranges[i]);
	r->nr = 0;
	return err;
}

static inline u64 load_word(const struct reader *r, const u8 *p)
{
	u64 value = 0;
	u8 w = r->snap->word_size;

	if (r->is_native) {
		memcpy(&value, p, 8);
		return value;
	}
	for (u8 i = 0; i < w; i++)
		value = value << 8 | p[r->snap->is_big_endian ? i : w - 1 - i];
	return value;
}

/* The common case of take(): nothing but compares and stores that do not depend on them. */
static int take_native(struct reader *r, const u8 *p, size_t nr, u64 where, u64 step)
{
	const struct scan *s = r->s;
	u64 lo = s->lo, length = s->hi - s->lo, mask = r->mask;

	while (nr) {
		size_t some = nr < MAX_TAKEN ? nr : MAX_TAKEN;
		struct candidate *c = r->candidates + r->nr;
		int err;

		for (size_t i = 0; i < some; i++, where += step) {
			u64 value;

			memcpy(&value, p + 8 * i, 8);
			value &= mask;
			c->value = value;
			c->where = where;
			c += value - lo < length;
		}
		r->nr = (size_t)(c - r->candidates);
		p += 8 * some;
		nr -= some;
		err = r->nr > NR_CANDIDATES - MAX_TAKEN ? flush(r) : 0;
		if (err)
			return err;
	}
	return 0;
}

/* Words of other sizes, byte orders, at any byte. */
static int take_any(struct reader *r, const u8 *p, size_t len, size_t stride, u64 where, u64 step)
{
	const struct scan *s = r->s;
	u64 length = s->hi - s->lo;

	for (size_t at = 0; at + r->snap->word_size <= len; at += stride, where += step) {
		u64 value = load_word(r, p + at) & r->mask;
		int err;

		if (value - s->lo >= length)
			continue;
		r->candidates[r->nr++] = (struct candidate){ .value = value, .where = where };
		err = r->nr == NR_CANDIDATES ? flush(r) : 0;
		if (err)
			return err;
	}
	return 0;
}

/* With unaligned pointers: those that begin in a piece and end behind it. */
static int take_straddling(struct reader *r, taddr_t end, u64 where)
{
	u8 w = r->snap->word_size, bytes[16];

	if (snapshot_peek(r->snap, end - (w - 1), bytes, 2U * (w - 1)) != 0)
		return 0;
	return take_any(r, bytes, 2U * (w - 1), 1, where, 0);
}

/* Take the words at [addr, addr + len), whose bytes are @p. @block = BLOCK_NONE: they are roots. */
static int take_words(struct reader *r, taddr_t addr, const u8 *p, size_t len, u32 block)
{
	u8 w = r->snap->word_size;
	bool is_root = block == BLOCK_NONE;
	u64 where = is_root ? WHERE(WHERE_MEMORY, addr) : WHERE(WHERE_BLOCK, (u64)block);
	size_t stride = r->s->options.want_unaligned ? 1 : w;
	size_t skip = (w - addr % w) % w;

	r->s->result.scanned_bytes += len;
	if (stride == w) {
		if (len < skip + w)
			return 0;
		addr += skip;
		p += skip;
		len = (len - skip) / w * w;
		if (is_root)
			where += skip;
	}
	if (r->is_native)
		return take_native(r, p, len / 8, where, is_root ? 8 : 0);
	return take_any(r, p, len, stride, where, is_root ? stride : 0);
}

/* The same without what is dead. */
static int take(struct reader *r, taddr_t addr, const u8 *p, size_t len, u32 block)
{
	const struct region_list *list = &r->regions;
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

static bool is_file(const struct snapshot_map *map)
{
	return map && map->ino && map->is_readable;
}

/* Read what @addr points to and judge: functions, behind a small offset and the type. */
static bool check_vtable(struct reader *r, taddr_t addr)
{
	u8 w = r->snap->word_size, bytes[(VTABLE_WORDS + 2) * 8];
	size_t len = (VTABLE_WORDS + 2U) * w;
	const struct snapshot_map *map = snapshot_map_find(r->snap, addr);
	u64 top;

	if (!is_file(map) || addr - map->start < 2U * w || map->end - addr < (u64)VTABLE_WORDS * w)
		return false;
	if (r->nr_vtable_reads++ > MAX_VTABLE_READS || snapshot_peek(r->snap, addr - 2U * w, bytes, len) != 0)
		return false;
	top = load_word(r, bytes); /* distance to the whole object: 0 or small and negative */
	if (w == 4)
		top = (u64)(s64)(s32)top;
	if (top && top < (u64) - (1 << 24))
		return false;
	for (size_t i = 0; i < VTABLE_WORDS; i++) {
		u64 value = load_word(r, bytes + (2 + i) * w);

		map = value ? snapshot_map_find(r->snap, value) : NULL;
		if (value)
			return map && map->is_executable;
	}
	return false;
}

static bool is_vtable(struct reader *r, taddr_t addr)
{
	size_t slot = (addr >> 3) % NR_VTABLES;

	if (addr < r->file_lo || addr >= r->file_hi || addr % r->snap->word_size)
		return false;
	if (r->vtables[slot].addr != addr) {
		r->vtables[slot].is_vtable = check_vtable(r, addr);
		r->vtables[slot].addr = addr;
	}
	return r->vtables[slot].is_vtable;
}

/* What the first words of a block say about pointers into it. @len bytes of it are at @p. */
static void look_at_head(struct reader *r, u32 block, const u8 *p, size_t len)
{
	struct scan_block *b = &r->s->blocks[block];
	u64 size = scan_block_size(r->s, block), first, second;
	u8 w = r->snap->word_size;

	if (size <= w || len < 2U * w || (len < 8 && size >= 8))
		return;
	first = load_word(r, p);
	second = load_word(r, p + w);
	if ((r->heuristics & SCAN_NEWARRAY) && first && first < size && (size - w) % first == 0)
		b->flags |= BLOCK_NEWARRAY;
	if ((r->heuristics & SCAN_STDSTRING) && first <= second && second < size &&
	    second + 3U * w + 1 == size)
		b->flags |= BLOCK_STDSTRING;
	if ((r->heuristics & SCAN_MULTIPLE) && is_vtable(r, first & r->mask))
		b->flags |= BLOCK_VPTRS;
	if (!(r->heuristics & SCAN_LENGTH64) || size <= 8)
		return;
	if (w == 4)
		first = r->snap->is_big_endian ? first << 32 | second : second << 32 | first;
	if (first == size - 8)
		b->flags |= BLOCK_LENGTH64;
}

/* Note further addresses of virtual tables in a block that begins with one. */
static int note_vptrs(struct reader *r, u32 block, taddr_t addr, const u8 *p, size_t len)
{
	u8 w = r->snap->word_size;
	u64 offset = addr - r->s->blocks[block].addr;
	int err = 0;

	if (offset % w || r->s->blocks[block].addr % w)
		return 0;
	for (size_t at = offset ? 0 : w; at + w <= len && !err; at += w) {
		if (!is_vtable(r, load_word(r, p + at) & r->mask))
			continue;
		err = flush(r); /* pointers of blocks before come first */
		if (!err)
			err = edges_add_vptr(&r->s->edges, block, (offset + at) / w);
	}
	return err;
}

/* Bytes [addr, addr + len) of a block. */
static int read_block(struct reader *r, u32 block, taddr_t addr, const u8 *p, size_t len)
{
	struct scan_block *b = &r->s->blocks[block];
	int err = 0;

	if (addr == b->addr && r->heuristics)
		look_at_head(r, block, p, len);
	if (b->flags & BLOCK_VPTRS)
		err = note_vptrs(r, block, addr, p, len);
	return err ? err : take(r, addr, p, len, block);
}

/* True if a thread stands in the hole between blocks, in @region. */
static bool has_point(const struct reader *r, const struct region *region)
{
	const struct scan *s = r->s;
	taddr_t before = r->cur ? scan_block_end(s, r->cur - 1) : 0;
	taddr_t behind = r->cur < s->nr ? s->blocks[r->cur].addr : UINT64_MAX;

	return region_has_point(&r->regions, before > region->start ? before : region->start,
				behind < region->end ? behind : region->end);
}

/* The part of a hole between blocks that lies in the region: the sub-range that counts as roots, if any. */
static bool region_roots(const struct reader *r, const struct region *region, taddr_t *start, taddr_t *end)
{
	const struct scan *s = r->s;
	taddr_t before = r->cur ? scan_block_end(s, r->cur - 1) : 0;
	taddr_t behind = r->cur < s->nr ? s->blocks[r->cur].addr : UINT64_MAX;

	if (region->kind == REGION_NEVER)
		return false;
	if (has_point(r, region) || region->kind == REGION_COVERED)
		return true;
	if (region->kind == REGION_HEAP)
		return false;
	if (before > *start - *start % r->page)
		*start += (r->page - *start % r->page) % r->page;
	if (behind < *end + (r->page - *end % r->page) % r->page)
		*end -= *end % r->page;
	return *start < *end;
}

/* Take [addr, end) but what of it lies in @nr ranges of @not. */
static int take_except(struct reader *r, taddr_t addr, taddr_t end, const u8 *p,
		       const struct dead_range * not, u32 nr)
{
	taddr_t at = addr;
	int err = 0;

	for (u32 i = 0; i < nr && not [i].start < end && !err; i++) {
		if (not [i].end <= at)
			continue;
		if (not [i].start > at)
			err = take(r, at, p + (at - addr), not [i].start - at, BLOCK_NONE);
		at = not [i].end;
	}
	return err || at >= end ? err : take(r, at, p + (at - addr), end - at, BLOCK_NONE);
}

/*
 * What surely is not used of the hole [addr, end), as glibc's chunks tell: what the block before did not ask for of its
 * own, and free ones. The hole is a whole one: from the block before, to whose chunk its first 8 bytes may belong, to
 * the header of the next block.
 */
static u32 find_free(const struct reader *r, const struct region *region, taddr_t addr, taddr_t end,
		     const u8 *p, struct dead_range *free_ranges)
{
	const struct scan *s = r->s;
	s32 nr;

	if (!region->is_glibc || !r->is_native || r->chunk + 8 < addr || end - addr < 16 ||
	    r->chunk > end - 16 || r->cur == s->nr || s->blocks[r->cur].addr != end)
		return 0;
	nr = chunk_find_free(r->chunk, end - 16, p + (s64)(r->chunk - addr), free_ranges + 1, MAX_FREE - 1);
	if (nr < 0)
		return 0;
	free_ranges[0] = (struct dead_range){ addr, r->chunk + 8 };
	return (u32)nr + 1;
}

/* What no block has covered of [addr, end), in memory of the allocator's. */
static int read_uncovered(struct reader *r, const struct region *region, taddr_t addr, taddr_t end,
			  const u8 *p)
{
	struct dead_range free_ranges[MAX_FREE];
	u32 nr_free = find_free(r, region, addr, end, p, free_ranges);
	taddr_t at = addr;
	int err = 0;

	while (at < end && !err) {
		bool is_covered;
		taddr_t next = cover_map_run(r->s->cover, at, end, &is_covered);

		if (!is_covered)
			err = take_except(r, at, next, p + (at - addr), free_ranges, nr_free);
		at = next;
	}
	return err;
}

/* Bytes [addr, end) outside blocks, whose bytes are @p. */
static int read_hole(struct reader *r, taddr_t addr, taddr_t end, const u8 *p)
{
	taddr_t base = addr;
	int err = 0;

	while (addr < end && !err) {
		const struct region *region = r->regions.regions + r->region;
		taddr_t start = addr, stop = end;

		while (r->region < r->regions.nr && region->end <= addr)
			region = r->regions.regions + ++r->region;
		if (r->region == r->regions.nr || region->start >= end) {
			err = take(r, start, p + (start - base), stop - start, BLOCK_NONE);
			break;
		}
		if (region->start > addr) {
			stop = region->start;
			err = take(r, start, p + (start - base), stop - start, BLOCK_NONE);
			addr = stop;
			continue;
		}
		addr = stop = region->end < end ? region->end : end;
		if (!region_roots(r, region, &start, &stop))
			continue;
		if (region->kind == REGION_COVERED && !has_point(r, region))
			err = read_uncovered(r, region, start, stop, p + (start - base));
		else
			err = take(r, start, p + (start - base), stop - start, BLOCK_NONE);
	}
	return err;
}

static int read_chunk(struct reader *r, const struct snapshot_chunk *chunk)
{
	const struct scan *s = r->s;
	taddr_t addr = chunk->addr, end = chunk->addr + chunk->len;
	int err = 0;

	if (s->options.want_unaligned && addr > r->snap->maps[chunk->map].start)
		err = take_straddling(r, addr, WHERE(WHERE_MEMORY, addr));
	while (addr < end && !err) {
		taddr_t stop = end;
		const u8 *p = chunk->data + (addr - chunk->addr);

		while (r->cur < s->nr && scan_block_end(s, r->cur) <= addr)
			r->cur++;
		if (r->cur < s->nr && s->blocks[r->cur].addr <= addr) {
			taddr_t block_end = scan_block_end(s, r->cur);

			stop = block_end < end ? block_end : end;
			if (addr == s->blocks[r->cur].addr)
				r->chunk = s->cover && addr - chunk->addr >= 8 ? chunk_end(addr, p) : 0;
			err = read_block(r, r->cur, addr, p, stop - addr);
		} else {
			if (r->cur < s->nr && s->blocks[r->cur].addr < end)
				stop = s->blocks[r->cur].addr;
			err = read_hole(r, addr, stop, p);
		}
		addr = stop;
	}
	return err;
}

/* Registers, words in the kernel, and blocks that a thread stands on: its stack. */
static int read_words(struct reader *r)
{
	const struct snapshot *snap = r->snap;
	const struct scan *s = r->s;

	for (size_t i = 0; i < snap->nr_words; i++) {
		struct candidate c = { .value = snap->words[i].value & r->mask,
				       .where = WHERE(WHERE_WORD, i) };
		int err;

		if (c.value - s->lo >= s->hi - s->lo)
			continue;
		r->candidates[r->nr++] = c;
		err = r->nr == NR_CANDIDATES ? flush(r) : 0;
		if (err)
			return err;
	}
	for (size_t i = 0; i < r->regions.nr_points; i++) {
		u32 block = scan_lookup(s, r->regions.points[i].addr);
		int err = block == BLOCK_NONE
				  ? 0
				  : hit_root(r, block, 0, WHERE(WHERE_WORD, (u64)r->regions.points[i].word));

		if (err)
			return err;
	}
	return flush(r);
}

static int read_all(struct reader *r)
{
	struct snapshot_chunk chunk;
	int nr, err;

	if (!r->s->nr)
		return 0;
	while ((nr = snapshot_next(r->snap, &chunk)) == 1) {
		err = read_chunk(r, &chunk);
		if (err)
			return err;
	}
	if (nr)
		return nr;
	err = flush(r);
	/* Last, because a block remembers its first root, and a variable's name tells more than a register's. */
	if (!err)
		err = read_words(r);
	if (!err)
		err = edges_finish(&r->s->edges, r->s->nr);
	return err;
}

static void init_reader(struct reader *r, struct scan *s)
{
	const u16 probe = 1;
	bool is_little = *(const u8 *)&probe == 1;

	r->s = s;
	r->snap = s->snap;
	r->page = (u64)sysconf(_SC_PAGESIZE);
	r->mask = s->options.pointer_mask ? s->options.pointer_mask : UINT64_MAX;
	r->heuristics = SCAN_HEURISTICS & ~s->options.no_heuristics;
	r->is_native = s->word_size == 8 && s->snap->is_big_endian != is_little && !s->options.want_unaligned;
	r->file_lo = UINT64_MAX;
	for (size_t i = 0; i < s->snap->nr_maps; i++) {
		const struct snapshot_map *map = &s->snap->maps[i];

		if (!is_file(map))
			continue;
		r->file_lo = map->start < r->file_lo ? map->start : r->file_lo;
		r->file_hi = map->end;
	}
}

/* Room for pointers: half of what the blocks hold is more than words of 8 bytes can make. */
static u64 edge_limit(const struct scan *s)
{
	u64 bytes = 0;

	if (s->options.max_memory)
		return s->options.max_memory;
	for (u32 i = 0; i < s->nr; i++)
		bytes += scan_block_size(s, i) + 32;
	return bytes * (s->word_size == 8 && !s->options.want_unaligned ? 1 : 8) + (1 << 20);
}

int scan_read(struct scan *s, struct snapshot *snap)
{
	auto_free struct reader *r = calloc(1, sizeof(*r));
	int err;

	if (!r)
		return -ENOMEM;
	s->snap = snap;
	s->word_size = snap->word_size;
	init_reader(r, s);
	s->cover = s->options.is_partial && s->books.cover ? s->books.cover(s->books.ctx) : NULL;
	err = scan_apply_drained(s);
	if (!err)
		err = edges_init(&s->edges, s->nr, edge_limit(s));
	if (!err)
		err = region_list_init(&r->regions, s);
	if (!err)
		err = read_all(r);
	region_list_fini(&r->regions);
	if (err)
		return err;
	for (int i = 0; i < NR_SNAPSHOT_SKIPS; i++)
		s->result.skipped_bytes += snap->skipped_bytes[i];
	s->result.nr_unstopped = snap->nr_unstopped;
	s->result.is_complete = !s->result.skipped_bytes && !snap->nr_unstopped;
	return 0;
}

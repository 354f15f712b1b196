/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The blocks of a scan: taken from the heap, sorted by address, looked up by pointers. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "user/heap/heap.h"
#include "user/lib/array.h"
#include "user/lib/cleanup.h"
#include "user/lib/progress.h"
#include "user/scan/scan_parts.h"
#include "user/scan/scan_shapes.h"
#include "user/scan/scan_unmap.h"

enum {
	FIRST_BLOCKS = 1024,
	ASK_EACH = 1 << 14,   /* whether the scan is wanted */
	INSERTION = 48,	      /* insertion sorts so few blocks faster */
	SPAN_HOLE = 32 << 20, /* bytes between two blocks that begin a new span */
	BLOCKS_PER_BUCKET = 8,
	HUGE_PAGE = 2 << 20,
	COLLAPSE_ADVICE = 25, /* MADV_COLLAPSE, Linux 6.1 */
};

u64 scan_block_size(const struct scan *s, u32 block)
{
	size_t at;
	taddr_t addr = s->blocks[block].addr;

	if (s->blocks[block].size != BLOCK_BIG)
		return s->blocks[block].size;
	at = array_search(i, 0, s->nr_big, s->big[i].addr < addr);
	return at < s->nr_big && s->big[at].addr == addr ? s->big[at].size : BLOCK_BIG;
}

void scan_use_huge_pages(void *p, size_t len, bool is_filled)
{
	uintptr_t start = ((uintptr_t)p + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
	uintptr_t end = ((uintptr_t)p + len) / HUGE_PAGE * HUGE_PAGE;

	/* This is only advice: if it fails, look-ups are slower. */
	if (start < end && madvise((void *)start, end - start, MADV_HUGEPAGE) == 0 && is_filled)
		madvise((void *)start, end - start, COLLAPSE_ADVICE);
}

/* The scan and the room of its array, while blocks are added. */
struct adding {
	struct scan *s;
	size_t capacity;
};

static int add_big(struct scan *s, taddr_t addr, u64 size)
{
	int err = array_reserve(s->big, s->max_big, s->nr_big + 1);

	if (err)
		return err;
	s->big[s->nr_big++] = (struct scan_big){ .addr = addr, .size = size };
	return 0;
}

static int make_block(struct scan *s, struct scan_block *b, taddr_t addr, u64 size, u8 flags)
{
	memset(b, 0, sizeof(*b));
	b->addr = addr;
	b->flags = flags;
	b->size = size < BLOCK_BIG ? (u32)size : BLOCK_BIG;
	return size < BLOCK_BIG ? 0 : add_big(s, addr, size);
}

static int scan_blocks_make_room(struct adding *a)
{
	struct scan *s = a->s;
	/* Not array_reserve(): by an eighth, because large arrays move by remapping, and less room is wasted. */
	size_t larger = a->capacity ? a->capacity + a->capacity / 8 : s->books.nr_blocks + FIRST_BLOCKS;
	struct scan_block *blocks = realloc(s->blocks, larger * sizeof(*blocks));

	if (!blocks)
		return -ENOMEM;
	s->blocks = blocks;
	a->capacity = larger;
	scan_use_huge_pages(blocks + s->nr, (larger - s->nr) * sizeof(*blocks), false);
	return 0;
}

static int scan_blocks_add_block(void *ctx, const struct heap_block *block)
{
	struct adding *a = ctx;
	struct scan *s = a->s;
	/* Nor is a block lost that an ignored one leads to. */
	u8 flags = (block->is_unsure ? BLOCK_TAINTED : 0) | (block->is_ignored ? BLOCK_ROOT : 0);

	if (s->nr % ASK_EACH == 0 && scan_is_unwanted(s))
		return -ECANCELED;
	if (s->nr == a->capacity && scan_blocks_make_room(a))
		return -ENOMEM;
	if (s->nr == BLOCK_NONE - 1)
		return -EOVERFLOW;
	if (block->order < s->first_order)
		s->first_order = block->order;
	if (block->order > s->last_order)
		s->last_order = block->order;
	if (block->is_pending) { /* in a realloc: the block is in use if a pointer leads to it */
		flags = BLOCK_YOUNG;
		s->has_pending = true;
	}
	/* Only a hostile target has blocks that wrap around or lie beyond all user addresses. */
	if (block->addr >> 56 || block->size >> 56)
		return 0;
	if (parts_note(s, block))
		return -ENOMEM;
	return make_block(s, &s->blocks[s->nr++], block->addr, block->size, flags);
}

static void insertion_sort(struct scan_block *b, size_t nr)
{
	for (size_t i = 1; i < nr; i++) {
		struct scan_block x = b[i];
		size_t j = i;

		for (; j && b[j - 1].addr > x.addr; j--)
			b[j] = b[j - 1];
		b[j] = x;
	}
}

/* Move each block to the bucket of its digit, in place. */
static void scan_blocks_distribute(struct scan_block *b, u32 next[256], const u32 end[256], int shift)
{
	for (int d = 0; d < 256; d++) {
		while (next[d] < end[d]) {
			struct scan_block x = b[next[d]];
			u32 digit;

			while ((digit = (x.addr >> shift) & 255) != (u32)d) {
				struct scan_block y = b[next[digit]];

				b[next[digit]++] = x;
				x = y;
			}
			b[next[d]++] = x;
		}
	}
}

/*
 * Sort by digits of 8 bits from the top, in place, so that no second array is needed. At most 7 levels deep. 0 or
 * -ECANCELED.
 */
static int sort_blocks(const struct scan *s, struct scan_block *b, u32 nr, int shift)
{
	u32 next[256] = { 0 }, end[256];
	u32 at = 0;
	int err = 0;

	if (nr <= INSERTION) {
		insertion_sort(b, nr);
		return 0;
	}
	if (nr >= ASK_EACH && scan_is_unwanted(s))
		return -ECANCELED;
	for (u32 i = 0; i < nr; i++)
		next[(b[i].addr >> shift) & 255]++;
	for (int d = 0; d < 256; d++) {
		u32 count = next[d];

		next[d] = at;
		at += count;
		end[d] = at;
	}
	scan_blocks_distribute(b, next, end, shift);
	for (int d = 0; d < 256 && shift && !err; d++) {
		u32 start = d ? end[d - 1] : 0;

		if (end[d] > start + 1)
			err = sort_blocks(s, b + start, end[d] - start, shift - 8);
	}
	return err;
}

static int by_addr_big(const void *a, const void *b)
{
	const struct scan_big *x = a, *y = b;

	return (x->addr > y->addr) - (x->addr < y->addr);
}

/* Keep one block per address, drop freed ones, and make blocks that overlap unsure. */
static void scan_blocks_tidy(struct scan *s)
{
	u32 nr = 0;

	for (u32 i = 0; i < s->nr; i++) {
		struct scan_block *b = &s->blocks[i];

		if (b->verdict == BLOCK_GONE)
			continue;
		if (nr && s->blocks[nr - 1].addr == b->addr) {
			s->result.nr_overlaps++;
			b->flags |= BLOCK_TAINTED;
			nr--;
		}
		s->blocks[nr++] = *b;
	}
	s->nr = nr;
	s->bytes = 0;
	if (!IS_AGENT)
		s->has_touching = false;
	for (u32 i = 0; i < nr; i++) {
		u64 size = scan_block_size(s, i);

		s->bytes += size;
		if (scan_has_rules(s) && i + 1 < nr)
			s->has_touching |= scan_block_end(s, i) == s->blocks[i + 1].addr;
		if (i + 1 == nr || s->blocks[i].addr + size <= s->blocks[i + 1].addr)
			continue;
		s->result.nr_overlaps++;
		s->blocks[i].flags |= BLOCK_TAINTED;
	}
}

static bool begins_span(const struct scan *s, u32 i)
{
	return i == 0 || s->blocks[i].addr - s->blocks[i - 1].addr > SPAN_HOLE;
}

static size_t count_spans(const struct scan *s)
{
	size_t nr = 0;

	for (u32 i = 0; i < s->nr; i++)
		nr += begins_span(s, i);
	return nr;
}

static void fill_buckets(const struct scan *s, const struct scan_span *span)
{
	u32 *bucket = s->buckets + span->bucket;
	u32 b = 0;

	for (u32 i = span->first; i < span->first + span->nr; i++)
		for (u64 at = (s->blocks[i].addr - span->start) >> span->shift; b <= at; b++)
			bucket[b] = i;
	for (; b <= span->nr_buckets; b++)
		bucket[b] = span->first + span->nr;
}

/* A span over blocks [first, end); chooses how many buckets it gets. */
static void make_span(const struct scan *s, struct scan_span *span, u32 first, u32 end, size_t bucket)
{
	taddr_t start = s->blocks[first].addr;
	u64 length = s->blocks[end - 1].addr - start;

	*span = (struct scan_span){ .start = start, .first = first, .nr = end - first, .bucket = bucket };
	/* A pointer that is the end counts in scan_ends.c, and is that of an empty array: SCAN_NEWARRAY. */
	span->end = scan_block_end(s, end - 1) + 1;
	while (length >> span->shift > (end - first) / BLOCKS_PER_BUCKET)
		span->shift++;
	span->nr_buckets = (u32)(length >> span->shift) + 1;
}

static int scan_blocks_make_spans(struct scan *s)
{
	size_t nr = 0, nr_spans = count_spans(s), nr_buckets = 0;
	u32 first = 0;

	free(s->spans);
	free(s->buckets);
	s->buckets = NULL;
	s->spans = calloc(nr_spans ? nr_spans : 1, sizeof(*s->spans));
	if (!s->spans)
		return -ENOMEM;
	for (u32 i = 1; i <= s->nr; i++) {
		if (i < s->nr && !begins_span(s, i))
			continue;
		make_span(s, &s->spans[nr], first, i, nr_buckets);
		nr_buckets += s->spans[nr++].nr_buckets + 1;
		first = i;
	}
	s->buckets = calloc(nr_buckets ? nr_buckets : 1, sizeof(*s->buckets));
	if (!s->buckets)
		return -ENOMEM;
	s->nr_spans = nr;
	s->nr_buckets = nr_buckets;
	for (size_t i = 0; i < nr; i++)
		fill_buckets(s, &s->spans[i]);
	s->lo = nr ? s->spans[0].start : 0;
	s->hi = nr ? s->spans[nr - 1].end : 0;
	return 0;
}

/* Sort the blocks by address, drop duplicates, build the index. 0 or -ENOMEM. */
static int scan_index(struct scan *s)
{
	bool is_sorted = true;
	int err = 0;

	for (u32 i = 1; i < s->nr && is_sorted; i++)
		is_sorted = s->blocks[i - 1].addr <= s->blocks[i].addr;
	if (!is_sorted)
		err = sort_blocks(s, s->blocks, s->nr, 48);
	if (err)
		return err;
	if (s->nr_big)
		qsort(s->big, s->nr_big, sizeof(*s->big), by_addr_big);
	scan_blocks_tidy(s);
	return scan_blocks_make_spans(s);
}

u32 scan_lower_bound(const struct scan *s, taddr_t addr)
{
	return (u32)array_search(i, 0, s->nr, s->blocks[i].addr < addr);
}

const struct scan_span *scan_span_find(const struct scan *s, taddr_t p)
{
	size_t at = array_search(i, 0, s->nr_spans, s->spans[i].end <= p);

	return at < s->nr_spans && s->spans[at].start <= p ? &s->spans[at] : NULL;
}

u32 scan_last_below(const struct scan *s, u32 lo, u32 hi, u32 guess, taddr_t p)
{
	const struct scan_block *blocks = s->blocks;

	/* Mostly the guess is right, or the block beside it. */
	if (guess < hi && blocks[guess].addr <= p) {
		lo = guess + 1;
		if (lo == hi || blocks[lo].addr > p)
			return guess;
	} else if (guess > lo && guess < hi) {
		hi = guess;
		if (blocks[hi - 1].addr <= p)
			return hi - 1;
	}
	return (u32)array_search(i, lo, hi, blocks[i].addr <= p) - 1;
}

u32 scan_lookup(const struct scan *s, taddr_t p)
{
	const struct scan_span *span = scan_span_find(s, p);
	const u32 *bucket;
	u32 i;

	if (!span)
		return BLOCK_NONE;
	bucket = s->buckets + scan_bucket(span, p);
	i = scan_last_below(s, bucket[0], bucket[1], scan_guess(span, bucket[0], bucket[1], p), p);
	return p < scan_block_end(s, i) ? i : BLOCK_NONE;
}

u32 scan_find_start(const struct scan *s, taddr_t addr)
{
	u32 i = addr >> 56 ? BLOCK_NONE : scan_lookup(s, addr);

	return i != BLOCK_NONE && s->blocks[i].addr == addr ? i : BLOCK_NONE;
}

int scan_new(struct scan **out, const struct scan_books *books, const struct scan_options *options)
{
	struct scan *s = calloc(1, sizeof(*s));
	struct adding adding = { .s = s };
	struct scan_block *exact;
	int err;

	if (!s)
		return -ENOMEM;
	s->first_order = UINT64_MAX;
	s->books = *books;
	s->options = *options;
	progress_phase("sorting its blocks");
	err = books->for_each(books->ctx, scan_blocks_add_block, &adding);
	if (!err)
		err = scan_index(s);
	if (err) {
		scan_free(s);
		return err;
	}
	exact = realloc(s->blocks, (s->nr ? s->nr : 1) * sizeof(*s->blocks));
	if (exact)
		s->blocks = exact;
	scan_use_huge_pages(s->blocks, s->nr * sizeof(*s->blocks), true);
	*out = s;
	return 0;
}

bool scan_is_unwanted(const struct scan *s)
{
	return s->options.is_unwanted && s->options.is_unwanted();
}

void scan_free(struct scan *s)
{
	if (!s)
		return;
	edges_fini(&s->edges);
	parts_free(s);
	roots_fini(&s->roots);
	if (!IS_AGENT)
		scan_ends_fini(s);
	free(s->behind);
	free(s->tagged);
	free(s->aware);
	free(s->drained);
	free(s->buckets);
	free(s->spans);
	free(s->big);
	free(s->blocks);
	free(s);
}

static int scan_blocks_note(struct scan *s, enum drained_kind kind, taddr_t addr, u64 size)
{
	u32 order = (u32)s->nr_drained;
	int err;

	if (addr >> 56 || size >> 56)
		return 0;
	err = array_reserve(s->drained, s->max_drained, s->nr_drained + 1);
	if (!err)
		s->drained[s->nr_drained++] =
			(struct drained){ .addr = addr, .size = size, .order = order, .kind = kind };
	return err;
}

int scan_event(struct scan *s, const struct heap_event *ev)
{
	int err = 0;

	switch (ev->h.kind) {
	case EVENT_ALLOC:
		return ev->addr ? scan_blocks_note(s, DRAINED_ALLOC, ev->addr, ev->size) : 0;
	case EVENT_FREE:
		return scan_blocks_note(s, ev->h.flags & EVENT_UNMAP ? DRAINED_UNMAP : DRAINED_FREE, ev->addr,
					ev->size);
	case EVENT_REALLOC_BEGIN:
		return scan_blocks_note(s, DRAINED_BEGIN, ev->old_addr, 0);
	case EVENT_REALLOC_END:
		if (ev->old_addr)
			err = scan_blocks_note(s, ev->addr ? DRAINED_SETTLE : DRAINED_FAIL, ev->old_addr, 0);
		return err || !ev->addr ? err : scan_blocks_note(s, DRAINED_ALLOC, ev->addr, ev->size);
	default:
		return 0;
	}
}

static int by_addr_drained(const void *a, const void *b)
{
	const struct drained *x = a, *y = b;

	if (x->addr != y->addr)
		return x->addr < y->addr ? -1 : 1;
	return (x->order > y->order) - (x->order < y->order);
}

/*
 * The result of all events of one address: DRAINED_ALLOC: a new block; DRAINED_BEGIN: a block in a realloc;
 * DRAINED_FREE: no block.
 */
static enum drained_kind scan_blocks_outcome(const struct drained *d, size_t nr, bool is_live, u64 *size)
{
	enum drained_kind now = is_live ? DRAINED_FAIL : DRAINED_FREE;

	for (size_t i = 0; i < nr; i++) {
		if (d[i].kind == DRAINED_ALLOC)
			*size = d[i].size;
		if (d[i].kind == DRAINED_SETTLE && now != DRAINED_BEGIN)
			continue; /* the address was allocated again before this return */
		now = d[i].kind == DRAINED_SETTLE ? DRAINED_FREE : (enum drained_kind)d[i].kind;
	}
	return now;
}

/* A range was unmapped, and the agent does not know when: blocks in it become unsure. */
static void apply_unmap(struct scan *s, const struct drained *d)
{
	u32 i = scan_lower_bound(s, d->addr);

	if (i && scan_block_end(s, i - 1) > d->addr)
		i--;
	for (; i < s->nr && s->blocks[i].addr < d->addr + d->size; i++)
		s->blocks[i].flags |= BLOCK_TAINTED;
}

/* Apply the @nr events of one address, d[0].addr. New blocks go to @young. */
static int scan_blocks_apply(struct scan *s, const struct drained *d, size_t nr, struct scan_block *young,
			     u32 *nr_young)
{
	u32 i = scan_lower_bound(s, d->addr);
	struct scan_block *b = i < s->nr && s->blocks[i].addr == d->addr ? &s->blocks[i] : NULL;
	enum drained_kind now;
	u64 size = 0;

	now = scan_blocks_outcome(d, nr, b != NULL, &size);
	s->has_pending |= now == DRAINED_BEGIN;
	if (now == DRAINED_ALLOC && b)
		b->verdict = BLOCK_GONE;
	if (now == DRAINED_ALLOC)
		return make_block(s, &young[(*nr_young)++], d->addr, size, BLOCK_YOUNG);
	if (b && now == DRAINED_FREE)
		b->verdict = BLOCK_GONE;
	else if (b)
		b->flags |= BLOCK_YOUNG;
	return 0;
}

/* Merge @nr sorted blocks of @young into the array, from the back. */
static int scan_blocks_merge(struct scan *s, const struct scan_block *young, u32 nr)
{
	struct scan_block *blocks;
	u32 old = s->nr, to;

	if (s->nr > BLOCK_NONE - 1 - nr)
		return -EOVERFLOW;
	blocks = realloc(s->blocks, ((size_t)s->nr + nr + 1) * sizeof(*blocks));
	if (!blocks)
		return -ENOMEM;
	s->blocks = blocks;
	s->nr = to = old + nr;
	while (nr) {
		if (old && blocks[old - 1].addr > young[nr - 1].addr)
			blocks[--to] = blocks[--old];
		else
			blocks[--to] = young[--nr];
	}
	return 0;
}

int scan_apply_drained(struct scan *s)
{
	auto_free struct scan_block *young = calloc(s->nr_drained ? s->nr_drained : 1, sizeof(*young));
	u32 nr_young = 0;
	int err = 0;

	if (!young)
		return -ENOMEM;
	if (!s->nr_drained)
		return 0;
	if (!IS_AGENT)
		scan_unmap_drained(s);
	qsort(s->drained, s->nr_drained, sizeof(*s->drained), by_addr_drained);
	for (size_t i = 0; i < s->nr_drained; i++)
		if (s->drained[i].kind == DRAINED_UNMAP)
			apply_unmap(s, &s->drained[i]);
	for (size_t i = 0, end; i < s->nr_drained && !err; i = end) {
		for (end = i + 1; end < s->nr_drained && s->drained[end].addr == s->drained[i].addr; end++)
			;
		err = scan_blocks_apply(s, s->drained + i, end - i, young, &nr_young);
	}
	free(take_ptr(s->drained));
	s->nr_drained = s->max_drained = 0;
	if (!err)
		err = scan_blocks_merge(s, young, nr_young);
	return err ? err : scan_index(s);
}

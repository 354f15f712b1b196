/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Blocks that a program keeps by pointers behind a header of its own: which callers keep all their blocks so? */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "user/heap/heap.h"
#include "user/heap/stacks.h"
#include "user/lib/array.h"
#include "user/lib/cleanup.h"
#include "user/lib/hash_index.h"
#include "user/scan/scan_shapes.h"
#include "user/scan/scan_spread.h"

/*
 * A program that puts a header before each block (a length, links of a list, a size for its accounts) keeps no pointer
 * to the start. Where nearly all blocks of a caller that are reached at all are reached at the same few offsets, this
 * is how the caller keeps its blocks. Old pointers lead anywhere.
 *
 * A caller is a call stack. Where one has few blocks, those with the same innermost frames count together, because a
 * wrapper around malloc() makes the header. A census knows no callers, but sizes, and many callers have blocks of a
 * size. So only blocks without a pointer to their start count there.
 */
enum {
	NEARLY_ALL = 8,	   /* all but one in so many blocks */
	NR_LEVELS = 3,	   /* the call stack, its inner frame, the two inner ones; or the size, all blocks */
	NR_OFFSETS = 8,	   /* of a caller */
	MIN_BEHIND = 16,   /* blocks */
	SITE_REACH = 1024, /* bytes of code */
	MAX_SAMPLES = 1 << 13, /* asking the books for each of millions of blocks takes long */
};
/* Of glibc, for words of 8 bytes. */
#define CHUNK_HEADER 8ULL
#define CHUNK_ALIGN  16ULL

struct behind_offset {
	u32 offset, nr;
};

struct behind_caller {
	u64 key;
	u64 site;			     /* the innermost frame; 0: not of one alone */
	u64 nr;				     /* blocks that are reached */
	struct behind_offset of[NR_OFFSETS]; /* not used: nr = 0 */
};

struct behind_finder {
	struct scan *s;
	const struct spread *spread;
	struct behind_caller *callers; /* owned; those with such blocks */
	size_t nr, max;
	struct hash_index index;   /* of callers */
	u32 step;		   /* one possible block in so many is counted */
	struct behind_caller sums; /* of the blocks that were found kept */
};

struct behind_keys {
	u64 of[NR_LEVELS]; /* 0 = none */
	u64 site;	   /* the innermost frame; 0 = none */
};

/*
 * When allocations were lost, free memory is a root, too, and free chunks of glibc lead to each other. A chunk begins
 * in the last words of the block before it, so all blocks of a size before free chunks are reached at one offset.
 */
static bool behind_is_chunk(const struct scan *s, const struct root_ref *ref)
{
	u64 chunk = (scan_block_size(s, ref->block) + CHUNK_HEADER + CHUNK_ALIGN - 1) & ~(CHUNK_ALIGN - 1);

	return s->options.is_partial && !s->cover && ref->offset + CHUNK_ALIGN == chunk;
}

void scan_note_root(struct spread *sp, const struct root_ref *ref)
{
	if (!behind_is_chunk(sp->s, ref))
		spread_note(sp, ref->block, ref->offset);
}

/*
 * The place in @block that the lowest pointer leads to: 0 for the start, and for a block to which only ends of others
 * lead. UINT32_MAX: none is known.
 */
static u32 behind_lowest(const struct spread *sp, u32 block)
{
	const struct scan *s = sp->s;
	u32 offset = spread_lowest(sp, block);
	bool may_be_start = s->blocks[block].flags & BLOCK_SHAPES || s->books.may_begin_within || s->aware;

	if (offset == UINT32_MAX)
		return offset;
	return end_bit(s->ends.may, block) || (may_be_start && scan_is_start(s, block, offset)) ? 0 : offset;
}

/* The length of the header in @block that a pointer leads behind; 0 = none does. */
static u32 behind_header(const struct spread *sp, u32 block)
{
	u32 offset = behind_lowest(sp, block);

	return offset <= SCAN_MAX_HEADER ? offset : 0;
}

/* The possible blocks in order, or one in step of those that no pointer to the start leads to. */
struct behind_iter {
	const struct spread *spread;
	u32 step;     /* 0: all */
	u32 nr, next; /* blocks so far; the next one to take */
	u32 word;     /* the next one of blocks */
	u64 left;     /* blocks of the word before */
};

/* The next block, or BLOCK_NONE. */
static inline u32 behind_next(struct behind_iter *it)
{
	for (;;) {
		u32 block;

		while (!it->left) {
			if (it->word == spread_words(it->spread))
				return BLOCK_NONE;
			it->left = spread_pending(it->spread, it->word++);
		}
		block = (it->word - 1) * SPREAD_WORD + (u32)__builtin_ctzll(it->left);
		it->left &= it->left - 1;
		if (!it->step)
			return block;
		if (!spread_lowest(it->spread, block) || it->nr++ != it->next)
			continue;
		it->next += it->step;
		if (behind_lowest(it->spread, block))
			return block;
	}
}

/* The keys of the callers of row @row. */
static struct behind_keys behind_keys_of_row(const struct scan_books *books, u32 row)
{
	const struct stack *stack = stack_get(books->stacks, heap_row_get(books->ctx, row).stack);
	struct behind_keys keys = { { hash_u64((u64)row + 1) } };
	u64 key = 0;

	for (u32 i = 0; stack && i < stack->nr_frames && i < NR_LEVELS - 1; i++) {
		key = hash_u64(key ^ stack->frames[i].offset ^ (u64)stack->frames[i].module << 40);
		keys.of[i + 1] = key | 1;
		keys.site = i ? keys.site : stack->frames[i].offset ^ (u64)stack->frames[i].module << 40;
	}
	return keys;
}

/* The keys of the callers of @block. False: the books do not know it. */
static bool behind_keys_of(const struct scan *s, u32 block, struct behind_keys *keys)
{
	struct heap_block found;

	if (!s->books.find(s->books.ctx, s->blocks[block].addr, &found))
		return false;
	if (s->books.stacks)
		*keys = behind_keys_of_row(&s->books, found.row);
	else
		*keys = (struct behind_keys){ { hash_u64(found.size + 2), hash_u64(1) } };
	return true;
}

static struct behind_caller *behind_find_caller(const struct behind_finder *f, u64 key)
{
	u32 at = 0, i;

	while (key && (i = hash_index_next(&f->index, key, &at)) != HASH_NO_ITEM)
		if (f->callers[i].key == key)
			return &f->callers[i];
	return NULL;
}

static struct behind_caller *behind_add_caller(struct behind_finder *f, u64 key)
{
	if (array_reserve(f->callers, f->max, f->nr + 1) || hash_index_add(&f->index, key, (u32)f->nr))
		return NULL;
	f->callers[f->nr] = (struct behind_caller){ .key = key };
	return &f->callers[f->nr++];
}

/* Count one more block at @offset. Where there are too many offsets, the rare ones make room for others. */
static void behind_count_offset(struct behind_caller *c, u32 offset)
{
	struct behind_offset *unused = NULL;

	for (u32 i = 0; i < NR_OFFSETS; i++) {
		if (c->of[i].nr && c->of[i].offset == offset) {
			c->of[i].nr++;
			return;
		}
		unused = c->of[i].nr ? unused : &c->of[i];
	}
	if (unused)
		*unused = (struct behind_offset){ offset, 1 };
	for (u32 i = 0; i < NR_OFFSETS && !unused; i++)
		c->of[i].nr--;
}

static int behind_count(struct behind_finder *f, u32 block)
{
	u32 offset = behind_header(f->spread, block);
	struct behind_keys keys;

	if (!behind_keys_of(f->s, block, &keys))
		return 0;
	for (u32 k = 0; k < NR_LEVELS && keys.of[k]; k++) {
		struct behind_caller *c = behind_find_caller(f, keys.of[k]);

		if (!c)
			c = behind_add_caller(f, keys.of[k]);
		if (!c)
			return -ENOMEM;
		c->site = k == 1 ? keys.site : 0;
		c->nr += f->s->books.stacks ? 0 : f->step;
		if (offset)
			behind_count_offset(c, offset);
	}
	return 0;
}

/* Enter the possible blocks. */
static int behind_count_possible(struct behind_finder *f)
{
	struct behind_iter it = { .spread = f->spread, .step = f->step };
	int err = 0;

	for (u32 i; !err && (i = behind_next(&it)) != BLOCK_NONE;)
		err = behind_count(f, i);
	return err;
}

static void behind_add_to(struct behind_finder *f, const struct behind_keys *keys, u64 nr)
{
	for (u32 k = 0; k < NR_LEVELS; k++) {
		struct behind_caller *c = behind_find_caller(f, keys->of[k]);

		if (c)
			c->nr += nr;
	}
}

/* With callers: count all their live blocks but those that nothing leads to. */
static void behind_count_reached(struct behind_finder *f)
{
	const struct scan *s = f->s;
	size_t nr_rows = s->books.stacks ? heap_row_count(s->books.ctx) : 0;
	struct behind_keys keys;

	for (u32 row = 0; row < nr_rows; row++) {
		keys = behind_keys_of_row(&s->books, row);
		behind_add_to(f, &keys, heap_row_get(s->books.ctx, row).live_blocks);
	}
	for (u32 w = 0; w < spread_words(f->spread) && nr_rows; w++)
		for (u64 left = spread_unseen(f->spread, w); left; left &= left - 1)
			if (behind_keys_of(s, w * SPREAD_WORD + (u32)__builtin_ctzll(left), &keys))
				behind_add_to(f, &keys, -1ULL);
}

/* Does the caller keep its blocks by pointers to @offset? */
static bool behind_is_habit(const struct behind_finder *f, const struct behind_caller *c, u32 offset)
{
	bool is_one = false;
	u64 nr = 0;

	for (u32 i = 0; i < NR_OFFSETS; i++) {
		if (c->of[i].nr < MIN_BEHIND)
			continue;
		nr += c->of[i].nr;
		is_one |= c->of[i].offset == offset;
	}
	return is_one && nr * f->step + f->step > c->nr - c->nr / NEARLY_ALL;
}

static bool behind_is_kept(const struct behind_finder *f, u32 block, u32 offset)
{
	struct behind_keys keys = { { 0 } };

	if (!behind_keys_of(f->s, block, &keys))
		return false;
	for (u32 k = 0; k < NR_LEVELS && keys.of[k]; k++) {
		const struct behind_caller *c = behind_find_caller(f, keys.of[k]);

		if (c && behind_is_habit(f, c, offset))
			return true;
	}
	return false;
}

/* The offsets of most of the @c are the headers that reports name. */
static void behind_name_headers(struct scan_result *r, const struct behind_caller *c)
{
	for (u32 n = 0; n < SCAN_NR_HEADERS; n++) {
		const struct behind_offset *most = NULL;

		for (u32 i = 0; i < NR_OFFSETS; i++) {
			bool is_named = false;

			for (u32 k = 0; k < n; k++)
				is_named |= r->headers[k] == c->of[i].offset;
			if (!is_named && c->of[i].nr && (!most || c->of[i].nr > most->nr))
				most = &c->of[i];
		}
		r->headers[n] = most ? most->offset : 0;
	}
}

/* Are nearly all samples kept so? Then their offsets decide about all other blocks. */
static bool behind_has_one_habit(struct behind_finder *f)
{
	struct behind_iter it = { .spread = f->spread, .step = f->step };
	u32 nr_samples = 0, nr_kept = 0;

	for (u32 i; (i = behind_next(&it)) != BLOCK_NONE; nr_samples++) {
		u32 offset = behind_header(f->spread, i);

		if (!offset || !behind_is_kept(f, i, offset))
			continue;
		nr_kept++;
		behind_count_offset(&f->sums, offset);
	}
	return nr_kept >= nr_samples - nr_samples / NEARLY_ALL;
}

static bool behind_has_offset(const struct behind_caller *c, u32 offset)
{
	for (u32 i = 0; i < NR_OFFSETS; i++)
		if (c->of[i].nr >= MIN_BEHIND && c->of[i].offset == offset)
			return true;
	return false;
}

/*
 * Set the bits of the blocks that are kept so. Roots and reachable blocks have pointers to the middle of some.
 * *@are_all: of all possible blocks.
 */
static int behind_decide(struct behind_finder *f, bool *are_all)
{
	struct behind_iter it = { .spread = f->spread };
	struct scan *s = f->s;
	u64 *bits = NULL;
	u32 known = 0; /* an offset at which all such blocks are kept */
	bool is_any_left = false;

	for (u32 i; (i = behind_next(&it)) != BLOCK_NONE;) {
		u32 offset = behind_header(f->spread, i);

		if (!offset || (offset != known && !(f->step > 1 ? behind_has_offset(&f->sums, offset)
								 : behind_is_kept(f, i, offset)))) {
			is_any_left = true;
			continue;
		}
		known = f->step > 1 ? offset : 0;
		if (!bits)
			bits = calloc(s->nr / 64 + 1, sizeof(*bits));
		if (!bits)
			return -ENOMEM;
		bits[i / 64] |= 1ULL << i % 64;
		if (s->blocks[i].flags & BLOCK_SEED)
			s->blocks[i].flags |= BLOCK_ROOT;
		if (f->step == 1)
			behind_count_offset(&f->sums, offset);
	}
	behind_name_headers(&s->result, &f->sums);
	s->behind = bits;
	*are_all = !bits || !is_any_left;
	return 0;
}

/* Headers with nothing behind them: the pointer is the end of the block. Which blocks may be such? */
struct behind_bare {
	u8 nr_of[SCAN_MAX_HEADER / 8 + 1]; /* bits: callers that keep their blocks behind so many words */
	u64 *areas;			   /* owned; behind_area() of the call sites that do so */
	size_t nr, max;
	struct hash_index index; /* of areas */
};

static u64 behind_area(u64 area, u32 offset)
{
	return hash_u64(hash_u64(area) ^ offset);
}

static int behind_add_bare(struct behind_bare *bare, const struct behind_caller *c, u32 offset)
{
	u64 area = behind_area(c->site / SITE_REACH, offset);

	bare->nr_of[offset / 8] |= (u8)(bare->nr_of[offset / 8] << 1 | 1);
	if (!c->site)
		return 0;
	if (array_reserve(bare->areas, bare->max, bare->nr + 1) ||
	    hash_index_add(&bare->index, area, (u32)bare->nr))
		return -ENOMEM;
	bare->areas[bare->nr++] = area;
	return 0;
}

static int behind_find_habits(const struct behind_finder *f, struct behind_bare *bare)
{
	int err = 0;

	for (size_t c = 0; c < f->nr; c++)
		for (u32 i = 0; i < NR_OFFSETS && !err; i++) {
			u32 offset = f->callers[c].of[i].offset;

			if (offset % 8 == 0 && behind_is_habit(f, &f->callers[c], offset))
				err = behind_add_bare(bare, &f->callers[c], offset);
		}
	return err;
}

/*
 * Mostly the same function allocates blocks with and without something behind the header, at call sites that are close
 * to each other.
 */
static bool behind_is_near(const struct behind_finder *f, const struct behind_bare *bare, u32 block,
			   u32 offset)
{
	struct behind_keys keys = { { 0 } };

	if (!behind_keys_of(f->s, block, &keys) || !keys.site)
		return false;
	for (u64 a = keys.site / SITE_REACH - 1, n = 0; n < 3; n++) {
		u64 area = behind_area(a + n, offset);
		u32 at = 0, i;

		while ((i = hash_index_next(&bare->index, area, &at)) != HASH_NO_ITEM)
			if (bare->areas[i] == area)
				return true;
	}
	return false;
}

/* In a census blocks of two other sizes must be kept so. */
static bool behind_is_bare(const struct behind_finder *f, const struct behind_bare *bare, u32 block)
{
	u64 size = scan_block_end(f->s, block) - f->s->blocks[block].addr;

	if (!size || size % 8 || size > SCAN_MAX_HEADER || !bare->nr_of[size / 8])
		return false;
	if (!f->s->books.stacks)
		return bare->nr_of[size / 8] > 1;
	return behind_is_kept(f, block, (u32)size) || behind_is_near(f, bare, block, (u32)size);
}

/* Does the block behind @block begin at its end, and does a pointer that counts lead there? */
static bool behind_is_next_held(const struct spread *sp, u32 block)
{
	const struct scan *s = sp->s;
	u32 next = block + 1;

	return next < s->nr && s->blocks[next].addr == scan_block_end(s, block) &&
	       (sp->judged[next / SPREAD_WORD] >> next % SPREAD_WORD & 1 || !spread_lowest(sp, next));
}

/*
 * Nothing leads to these blocks but, maybe, pointers to their ends. Where no block begins, such a pointer holds the
 * block as others of its caller are held. Else it may mean the next block, too, and the block is possibly lost.
 */
static int behind_hold_bare(struct behind_finder *f, const struct behind_bare *bare, bool *are_all)
{
	struct scan *s = f->s;

	for (u32 w = 0; w < spread_words(f->spread); w++)
		for (u64 left = spread_unseen(f->spread, w); left; left &= left - 1) {
			u32 block = w * SPREAD_WORD + (u32)__builtin_ctzll(left);

			if (!behind_is_bare(f, bare, block))
				continue;
			if (!s->ends.tails)
				s->ends.tails = calloc(s->nr / 64 + 1, sizeof(u64));
			if (!s->ends.tails)
				return -ENOMEM;
			if (behind_is_next_held(f->spread, block))
				s->blocks[block].flags |= BLOCK_SEED;
			s->ends.tails[w] |= left & -left;
			s->behind[w] |= left & -left;
			*are_all = false;
		}
	return 0;
}

static int behind_find_bare(struct behind_finder *f, bool *are_all)
{
	struct behind_bare bare = { .areas = NULL };
	struct scan *s = f->s;
	struct root_iter roots = { &s->roots };
	struct root_ref ref;
	struct edge_iter it;
	int err = behind_find_habits(f, &bare);

	if (!err)
		err = behind_hold_bare(f, &bare, are_all);
	hash_index_fini(&bare.index);
	free(bare.areas);
	if (err || !s->ends.tails)
		return err;
	s->edges.ends = s->roots.ends = &s->ends;
	while (root_next(&roots, &ref))
		if (end_bit(s->ends.tails, ref.block))
			s->blocks[ref.block].flags |= BLOCK_ROOT;
	/* Blocks that are reachable already are not followed again. */
	edge_begin(&it, &s->edges, 0);
	for (u32 i = 0; i < s->nr; i++, edge_next_source(&it))
		while (end_bit(f->spread->judged, i) && edge_next(&it))
			if (it.is_tail)
				s->blocks[it.target].flags |= BLOCK_ROOT;
	return 0;
}

static void behind_fini(struct behind_finder *f)
{
	hash_index_fini(&f->index);
	free(f->callers);
}

/* Look at one possible block in @step. *@is_clear: that was enough. */
static int behind_look(struct behind_finder *f, const struct spread *sp, u32 step, bool *is_clear)
{
	int err;

	*f = (struct behind_finder){ .s = sp->s, .spread = sp, .step = step };
	err = behind_count_possible(f);
	if (!err)
		behind_count_reached(f);
	*is_clear = !err && (step == 1 || behind_has_one_habit(f));
	return err;
}

static u32 behind_nr_possible(const struct spread *sp)
{
	u32 nr = 0;

	for (u32 w = 0; w < spread_words(sp); w++)
		nr += (u32)__builtin_popcountll(spread_pending(sp, w));
	return nr;
}

static int behind_find(struct spread *sp, u32 nr_possible, bool *are_all)
{
	struct behind_finder f;
	bool is_clear;
	int err = behind_look(&f, sp, nr_possible / MAX_SAMPLES + 1, &is_clear);

	if (!err && !is_clear) {
		behind_fini(&f);
		err = behind_look(&f, sp, 1, &is_clear);
	}
	if (!err)
		err = behind_decide(&f, are_all);
	if (!err && sp->s->behind)
		err = behind_find_bare(&f, are_all);
	behind_fini(&f);
	return err;
}

int scan_find_behind(struct spread *sp, bool *are_all)
{
	u32 nr_possible = behind_nr_possible(sp);
	int err = 0;

	*are_all = true;
	if (sp->notes && nr_possible >= MIN_BEHIND)
		err = behind_find(sp, nr_possible, are_all);
	free(take_ptr(sp->notes));
	if (sp->s->behind && *are_all)
		sp->pending = SCAN_REACHABLE;
	return err;
}

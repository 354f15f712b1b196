/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Pointers that are the end of one block and the start of the next: which of the two does the program mean? */
#include <errno.h>
#include <stdlib.h>

#include "user/heap/cover_map.h"
#include "user/heap/heap.h"
#include "user/heap/stacks.h"
#include "user/lib/array.h"
#include "user/lib/cleanup.h"
#include "user/scan/scan_look.h"
#include "user/scan/scan_shapes.h"

/*
 * One pair of words does not say it: two pointers side by side look like begin and end. Even three words do not: an
 * array of [data, position] is one of [begin, position, end], if the data of one entry lies behind that of the entry
 * before. The callers of the blocks decide.
 *
 * The caller of the block before: where its blocks are held by begin and end, this is so for all of them that are held,
 * and most ends lie where no block can begin: inside of what the allocator gave for the block, or behind the last block
 * of a page. Then all of these words are ends, and a block of another caller that only such words lead to
 * is lost. Of three words nobody asks for that proof. If the words are ends for nearly all blocks of the caller only,
 * or if the block behind is of the same caller, the block behind is possibly lost.
 *
 * Else the caller of the block behind. If a block is held, other blocks of its caller are held too, and not all of
 * these lie behind the block that the word before points to. So where no block of a caller has a sure pointer, and
 * several have such words, the words are ends. But a table of pairs that are allocated in turn looks the same, so the
 * blocks are possibly lost, and not definitely.
 */
enum {
	MIN_DOUBTFUL = 4,
	MIN_PROVEN = 8,
	MOST = 2,	/* one in so many, or more */
	NEARLY_ALL = 8, /* all but one in so many blocks */
	MIN_FRAMES = 2, /* of a caller that is no wrapper around malloc() */
	NO_START = 7,	/* no block begins at an address with one of these bits */
};

/* The blocks of one caller. */
struct end_caller {
	u32 nr_sure;	    /* have another pointer to them */
	u32 nr_doubtful;    /* have only words that may be ends */
	u32 nr_begins;	    /* have their end beside a pointer to them */
	u32 nr_sure_begins; /* those of nr_sure */
	u32 nr_proven;	    /* those whose end can be nothing else */
};

struct end_finder {
	struct scan *s;
	const struct cover_map *cover; /* borrowed; all bytes that blocks ever covered; NULL: not known */
	u64 *may;		       /* bits: words that may be ends lead to these blocks; borrowed */
	u64 *sure;		       /* bits: blocks that another pointer leads to */
	struct end_caller *callers;
	size_t nr, max;
};

static void ends_set_bit(u64 *bits, u32 i)
{
	bits[i / 64] |= 1ULL << i % 64;
}

int looker_note_begin(struct looker *r, u32 block, bool is_alone)
{
	int err = array_reserve(r->begins, r->max_begins, r->nr_begins + 1);

	if (!err)
		r->begins[r->nr_begins++] = (struct block_begin){ block, is_alone };
	return err;
}

int scan_enter_begins(struct scan *s, struct looker *r)
{
	struct end_bits *ends = &s->ends;

	if (r->nr_begins && !ends->begins) {
		ends->begins = calloc(s->nr / 64 + 1, sizeof(u64));
		ends->threes = calloc(s->nr / 64 + 1, sizeof(u64));
		if (!ends->begins || !ends->threes)
			return -ENOMEM;
	}
	for (size_t i = 0; i < r->nr_begins; i++)
		ends_set_bit(r->begins[i].is_alone ? ends->begins : ends->threes, r->begins[i].block);
	r->nr_begins = 0;
	return 0;
}

void scan_ends_fini(struct scan *s)
{
	free(s->ends.may);
	free(s->ends.surely);
	free(s->ends.begins);
	free(s->ends.threes);
	free(s->ends.links);
	free(s->ends.tails);
}

static void ends_note_pointers(struct end_finder *f)
{
	struct root_iter roots = { &f->s->roots };
	struct edge_iter it;
	struct root_ref ref;

	edge_begin(&it, &f->s->edges, 0);
	for (u32 i = 0; i < f->s->nr; i++, edge_next_source(&it))
		while (edge_next(&it))
			ends_set_bit(it.may_be_end ? f->may : f->sure, it.target);
	while (root_next(&roots, &ref))
		ends_set_bit(roots.may_be_end ? f->may : f->sure, ref.block);
	for (u32 i = 0; i < f->s->nr; i++)
		if (f->s->blocks[i].flags & BLOCK_ROOT)
			ends_set_bit(f->sure, i);
}

static bool ends_is_doubtful(const struct end_finder *f, u32 i)
{
	return end_bit(f->may, i) && !end_bit(f->sure, i);
}

/* Can no block begin where block @i ends, though none does now? */
static bool ends_is_nothing_behind(const struct end_finder *f, u32 i)
{
	taddr_t end = f->s->blocks[i].addr + scan_block_size(f->s, i);
	bool is_covered = true;

	if (f->cover)
		cover_map_run(f->cover, end, end + 1, &is_covered);
	return end & NO_START || !is_covered;
}

static int ends_count_block(void *ctx, const struct heap_block *block)
{
	struct end_finder *f = ctx;
	const struct end_bits *ends = &f->s->ends;
	u32 i = scan_find_start(f->s, block->addr);
	struct end_caller *c;
	bool is_begin;

	if (array_reserve(f->callers, f->max, (size_t)block->row + 1))
		return -ENOMEM;
	for (; f->nr <= block->row; f->nr++)
		f->callers[f->nr] = (struct end_caller){ 0 };
	if (i == BLOCK_NONE)
		return 0;
	c = &f->callers[block->row];
	is_begin = end_bit(ends->begins, i) || end_bit(ends->threes, i) ||
		   (i + 1 < f->s->nr && end_bit(f->may, i + 1));
	c->nr_sure += end_bit(f->sure, i);
	c->nr_doubtful += ends_is_doubtful(f, i);
	c->nr_begins += is_begin;
	c->nr_sure_begins += is_begin && end_bit(f->sure, i);
	c->nr_proven += end_bit(ends->begins, i) && ends_is_nothing_behind(f, i);
	return 0;
}

static bool ends_has_proof(const struct end_finder *f, u32 row)
{
	const struct end_caller *c = &f->callers[row];

	return row < f->nr && c->nr_proven >= MIN_PROVEN && c->nr_proven >= c->nr_begins / MOST;
}

/* Can all blocks of @row that are held be held by begin and end? Wrappers around malloc() have blocks of all kinds. */
static bool ends_is_usual(const struct end_finder *f, u32 row, bool for_all)
{
	const struct scan_books *books = &f->s->books;
	const struct end_caller *c = &f->callers[row];
	const struct stack *stack;

	if (row >= f->nr || c->nr_sure_begins < c->nr_sure - (for_all ? 0 : c->nr_sure / NEARLY_ALL))
		return false;
	stack = books->stacks ? stack_get(books->stacks, heap_row_get(books->ctx, row).stack) : NULL;
	return !for_all || !books->stacks || (stack && stack->nr_frames >= MIN_FRAMES);
}

/* Decide what the words mean that lead to block @i, all of which may be ends. */
static void ends_decide(struct end_finder *f, u32 i)
{
	const struct scan_books *books = &f->s->books;
	bool is_open = end_bit(f->may, i), is_same, is_proven;
	struct heap_block block, before;
	const struct end_caller *c;

	if (!books->find(books->ctx, f->s->blocks[i].addr, &block) ||
	    !books->find(books->ctx, f->s->blocks[i - 1].addr, &before) || block.row >= f->nr)
		return;
	/* Ends of three words hold nothing so far. */
	if (!is_open && books->stacks && !ends_is_usual(f, before.row, true))
		f->s->blocks[i].flags |= ends_is_usual(f, before.row, false) ? BLOCK_SEED : BLOCK_ROOT;
	c = &f->callers[block.row];
	is_same = block.row == before.row;
	/* A block whose end is known has it elsewhere, and these words are a table. */
	is_proven = !end_bit(f->s->ends.threes, i - 1) && ends_has_proof(f, before.row);
	if (!is_open)
		return;
	if (is_proven && !is_same && ends_is_usual(f, before.row, true)) {
		ends_set_bit(f->s->ends.surely, i);
		f->s->blocks[i].flags &= (u8)~BLOCK_SEED;
	}
	if (is_same ? books->stacks && is_proven && ends_is_usual(f, before.row, false)
		    : !c->nr_sure && c->nr_doubtful >= MIN_DOUBTFUL)
		ends_set_bit(f->s->ends.may, i);
}

int scan_find_ends(struct scan *s)
{
	size_t nr_words = s->nr / 64 + 1;
	auto_free u64 *may = NULL;
	auto_free u64 *sure = NULL;
	struct end_finder f = { .s = s };
	int err;

	if (!s->has_ends || !s->books.find)
		return 0;
	f.may = may = calloc(nr_words, sizeof(*may));
	f.sure = sure = calloc(nr_words, sizeof(*sure));
	s->ends.may = calloc(nr_words, sizeof(*s->ends.may));
	s->ends.surely = calloc(nr_words, sizeof(*s->ends.surely));
	if (!may || !sure || !s->ends.may || !s->ends.surely)
		return -ENOMEM;
	if (s->books.cover && !s->options.is_partial)
		f.cover = s->books.cover(s->books.ctx);
	ends_note_pointers(&f);
	err = s->books.for_each(s->books.ctx, ends_count_block, &f);
	for (u32 i = 1; i < s->nr && !err; i++)
		if (!end_bit(sure, i) && (end_bit(may, i) || end_bit(s->ends.threes, i - 1)))
			ends_decide(&f, i);
	free(f.callers);
	s->edges.ends = s->roots.ends = &s->ends;
	return err;
}

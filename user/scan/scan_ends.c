/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Pointers that are the end of one block and the start of the next: which of the two does the program mean? */
#include <errno.h>
#include <stdlib.h>

#include "user/lib/array.h"
#include "user/lib/cleanup.h"
#include "user/scan/scan_shapes.h"

/*
 * One pair of words does not say it: two pointers side by side look like begin and end. The callers of the blocks do.
 * If a block is held, other blocks of its caller are held too, and not all of these lie behind the block that the word
 * before points to. So where no block of a caller has a sure pointer, and several have such words, the words are ends.
 * But a table of pairs that are allocated in turn looks the same, so the blocks are possibly lost, and not definitely.
 */
enum { MIN_DOUBTFUL = 4 };

/* The blocks of one caller. */
struct end_caller {
	u32 nr_sure;	 /* have another pointer to them */
	u32 nr_doubtful; /* have only words that may be ends */
};

struct end_finder {
	struct scan *s;
	u64 *sure; /* bits: blocks that another pointer leads to */
	struct end_caller *callers;
	size_t nr, max;
};

static void set_bit(u64 *bits, u32 i)
{
	bits[i / 64] |= 1ULL << i % 64;
}

static bool has_bit(const u64 *bits, u32 i)
{
	return bits[i / 64] >> i % 64 & 1;
}

static void note_pointers(struct end_finder *f)
{
	struct root_iter roots = { &f->s->roots };
	struct edge_iter it;
	struct root_ref ref;

	edge_begin(&it, &f->s->edges, 0);
	for (u32 i = 0; i < f->s->nr; i++, edge_next_source(&it))
		while (edge_next(&it))
			set_bit(it.may_be_end ? f->s->ends : f->sure, it.target);
	while (root_next(&roots, &ref))
		set_bit(roots.may_be_end ? f->s->ends : f->sure, ref.block);
	for (u32 i = 0; i < f->s->nr; i++)
		if (f->s->blocks[i].flags & BLOCK_ROOT)
			set_bit(f->sure, i);
	for (u32 w = 0; w <= f->s->nr / 64; w++)
		f->s->ends[w] &= ~f->sure[w];
}

static int count_block(void *ctx, const struct heap_block *block)
{
	struct end_finder *f = ctx;
	u32 i = scan_find_start(f->s, block->addr);

	if (array_reserve(f->callers, f->max, (size_t)block->row + 1))
		return -ENOMEM;
	for (; f->nr <= block->row; f->nr++)
		f->callers[f->nr] = (struct end_caller){ 0 };
	if (i == BLOCK_NONE)
		return 0;
	f->callers[block->row].nr_sure += has_bit(f->sure, i);
	f->callers[block->row].nr_doubtful += has_bit(f->s->ends, i);
	return 0;
}

/* Do the words that lead to block @i mean the end of the block before? */
static bool means_end(const struct end_finder *f, u32 i)
{
	const struct scan_books *books = &f->s->books;
	struct heap_block block, before;

	return books->find(books->ctx, f->s->blocks[i].addr, &block) &&
	       books->find(books->ctx, f->s->blocks[i - 1].addr, &before) && block.row != before.row &&
	       block.row < f->nr && !f->callers[block.row].nr_sure &&
	       f->callers[block.row].nr_doubtful >= MIN_DOUBTFUL;
}

int scan_find_ends(struct scan *s)
{
	size_t nr_words = s->nr / 64 + 1;
	auto_free u64 *sure = NULL;
	struct end_finder f = { .s = s };
	int err;

	if (!s->has_ends || !s->books.find)
		return 0;
	f.sure = sure = calloc(nr_words, sizeof(*sure));
	s->ends = calloc(nr_words, sizeof(*s->ends));
	if (!sure || !s->ends)
		return -ENOMEM;
	note_pointers(&f);
	err = s->books.for_each(s->books.ctx, count_block, &f);
	for (u32 i = 0; i < s->nr && !err; i++)
		if (has_bit(s->ends, i) && !means_end(&f, i))
			s->ends[i / 64] &= ~(1ULL << i % 64);
	free(f.callers);
	s->edges.ends = s->roots.ends = s->ends;
	return err;
}

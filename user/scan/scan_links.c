/* SPDX-License-Identifier: GPL-2.0-or-later */
/* First words of blocks that are no pointers of the program, but what is left of a list of free blocks. */
#include <errno.h>
#include <stdlib.h>

#include "user/lib/array.h"
#include "user/lib/cleanup.h"
#include "user/scan/scan_shapes.h"

/*
 * mimalloc gives an aligned address in a block, and does not say where. The program never writes the words before it:
 * the first one still leads to the block that followed in the list of free ones, which is the next one to be given out.
 *
 * So where pointers lead to an aligned place in a block, and none to its start, the first word is no pointer of the
 * program, if it leads to a block of the same page. Such words, and those of blocks that nothing leads to, are no
 * pointers to starts: rounds find the others.
 */
enum { MAX_ROUNDS = 64 };

struct free_link {
	u32 source, target;
};

struct link_finder {
	struct scan *s;
	struct free_link *of; /* owned */
	size_t nr, max;
	/* Owned; bits: pointers lead to the starts of these blocks; to aligned places in them; elsewhere. */
	u64 *starts, *within, *elsewhere;
};

static void links_set(u64 *bits, u32 block)
{
	bits[block / 64] |= 1ULL << block % 64;
}

static void links_note(const struct link_finder *f, u32 block, u64 offset)
{
	if (!offset)
		links_set(f->starts, block);
	else if (scan_is_aligned_start(f->s, block, offset))
		links_set(f->within, block);
	else
		links_set(f->elsewhere, block);
}

static int links_note_pointers(struct link_finder *f)
{
	struct root_iter roots = { &f->s->roots };
	struct edge_iter it;
	struct root_ref ref;

	edge_begin(&it, &f->s->edges, 0);
	for (u32 i = 0; i < f->s->nr; i++, edge_next_source(&it)) {
		while (edge_next(&it)) {
			if (!it.is_link) {
				links_note(f, it.target, it.offset);
				continue;
			}
			if (array_reserve(f->of, f->max, f->nr + 1))
				return -ENOMEM;
			f->of[f->nr++] = (struct free_link){ i, it.target };
		}
		if (f->s->blocks[i].flags & BLOCK_ROOT)
			links_set(f->starts, i);
	}
	while (root_next(&roots, &ref))
		links_note(f, ref.block, ref.offset);
	return 0;
}

/* Is the first word of the source not the program's? */
static bool links_is_old(const struct link_finder *f, const struct free_link *l)
{
	return end_bit(f->within, l->source) && !end_bit(f->starts, l->source);
}

/* Blocks that first words of the program lead to have a pointer to the start. False: another round is needed. */
static bool links_spread(const struct link_finder *f)
{
	bool is_over = true;

	for (size_t i = 0; i < f->nr; i++) {
		const struct free_link *l = &f->of[i];

		bool is_pointer = end_bit(f->starts, l->source) ||
				  (end_bit(f->elsewhere, l->source) && !end_bit(f->within, l->source));

		if (!is_pointer || end_bit(f->starts, l->target))
			continue;
		links_set(f->starts, l->target);
		is_over = false;
	}
	return is_over;
}

static int links_decide(struct link_finder *f)
{
	struct scan *s = f->s;
	bool is_over = false;

	for (u32 round = 0; round < MAX_ROUNDS && !is_over; round++)
		is_over = links_spread(f);
	if (!is_over)
		return 0;
	s->ends.links = calloc(s->nr / 64 + 1, sizeof(*s->ends.links));
	if (!s->ends.links)
		return -ENOMEM;
	for (size_t i = 0; i < f->nr; i++) {
		if (!links_is_old(f, &f->of[i]))
			continue;
		links_set(s->ends.links, f->of[i].source);
		s->result.nr_links++;
	}
	s->edges.ends = &s->ends;
	return 0;
}

int scan_find_links(struct scan *s)
{
	auto_free u64 *starts = NULL;
	auto_free u64 *within = NULL;
	auto_free u64 *elsewhere = NULL;
	struct link_finder f = { .s = s };
	int err;

	if (!s->has_links)
		return 0;
	f.starts = starts = calloc(s->nr / 64 + 1, sizeof(*starts));
	f.within = within = calloc(s->nr / 64 + 1, sizeof(*within));
	f.elsewhere = elsewhere = calloc(s->nr / 64 + 1, sizeof(*elsewhere));
	err = starts && within && elsewhere ? links_note_pointers(&f) : -ENOMEM;
	if (!err)
		err = links_decide(&f);
	free(f.of);
	return err;
}

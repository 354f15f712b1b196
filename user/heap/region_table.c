/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Live blocks of mmap: a sorted array of the pieces that are left. Each has the index of its region. */
#include "user/heap/region_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "user/lib/array.h"

void region_table_init(struct region_table *t, struct budget *budget)
{
	*t = (struct region_table){ .budget = budget };
}

void region_table_fini(struct region_table *t)
{
	budget_give(t->budget, t->max_pieces * sizeof(*t->pieces) + t->max_regions * sizeof(*t->regions));
	free(t->pieces);
	free(t->regions);
	region_table_init(t, t->budget);
}

/* A split needs one more piece. A piece that was taken out and is put back needs another. */
int region_table_reserve(struct region_table *t)
{
	int err;

	if (t->nr_pieces + 2 >= UINT32_MAX || t->nr_regions + 2 >= UINT32_MAX)
		return -ENOMEM;
	err = budget_array(t->budget, t->pieces, t->max_pieces, t->nr_pieces + 2);
	return err ? err : budget_array(t->budget, t->regions, t->max_regions, t->nr_regions + 2);
}

int region_table_copy(struct region_table *out, const struct region_table *t, struct budget *budget)
{
	int err;

	region_table_init(out, budget);
	err = budget_copy(budget, &out->pieces, t->pieces, t->nr_pieces * sizeof(*t->pieces));
	if (err)
		return err;
	out->nr_pieces = t->nr_pieces;
	out->max_pieces = t->nr_pieces;
	err = budget_copy(budget, &out->regions, t->regions, t->nr_regions * sizeof(*t->regions));
	if (err) {
		region_table_fini(out);
		return err;
	}
	out->nr_regions = t->nr_regions;
	out->max_regions = t->nr_regions;
	out->first_free = t->first_free;
	return 0;
}

/* Index of the first piece that begins below @addr. The highest piece comes first. */
static size_t first_below(const struct region_table *t, taddr_t addr)
{
	return array_search(i, 0, t->nr_pieces, t->pieces[i].start >= addr);
}

/* Replace @nr_old pieces from index @at on by @nr_new others. */
static void region_table_replace(struct region_table *t, size_t at, size_t nr_old,
				 const struct region_piece *pieces, size_t nr_new)
{
	size_t nr_behind = t->nr_pieces - at - nr_old;

	memmove(&t->pieces[at + nr_new], &t->pieces[at + nr_old], nr_behind * sizeof(*t->pieces));
	for (size_t i = 0; i < nr_new; i++)
		t->pieces[at + i] = pieces[i];
	t->nr_pieces = t->nr_pieces - nr_old + nr_new;
}

void region_table_add(struct region_table *t, taddr_t start, taddr_t end, const struct heap_region *region)
{
	struct region_piece piece = { .start = start, .end = end };

	if (t->first_free) {
		piece.region = t->first_free - 1;
		t->first_free = t->regions[piece.region].next_free;
	} else {
		piece.region = t->nr_regions++;
	}
	t->regions[piece.region] = *region;
	t->regions[piece.region].nr_pieces = 1;
	region_table_replace(t, first_below(t, start), 0, &piece, 1);
}

bool region_table_release(struct region_table *t, const struct region_piece *piece)
{
	struct heap_region *r = &t->regions[piece->region];

	if (--r->nr_pieces)
		return false;
	r->next_free = t->first_free;
	t->first_free = piece->region + 1;
	return true;
}

void region_table_cut(struct region_table *t, taddr_t start, taddr_t end, region_visit *visit, void *ctx)
{
	struct region_piece rest[2];
	size_t nr_rest = 0;
	size_t first = first_below(t, end);
	size_t i;

	for (i = first; i < t->nr_pieces && t->pieces[i].end > start; i++) {
		struct region_piece p = t->pieces[i];
		taddr_t cut_start = p.start > start ? p.start : start;
		taddr_t cut_end = p.end < end ? p.end : end;

		if (cut_end < p.end)
			rest[nr_rest++] = (struct region_piece){ cut_end, p.end, p.region };
		if (cut_start > p.start)
			rest[nr_rest++] = (struct region_piece){ p.start, cut_start, p.region };
		t->regions[p.region].nr_pieces += (cut_end < p.end) + (cut_start > p.start);
		visit(ctx, &t->regions[p.region], cut_end - cut_start, region_table_release(t, &p));
	}
	region_table_replace(t, first, i - first, rest, nr_rest);
}

/* Index of the piece that contains @addr, or nr_pieces. */
static size_t holder_of(const struct region_table *t, taddr_t addr)
{
	size_t i = addr + 1 ? first_below(t, addr + 1) : 0;

	return i < t->nr_pieces && t->pieces[i].end > addr ? i : t->nr_pieces;
}

bool region_table_take(struct region_table *t, taddr_t addr, struct region_piece *out)
{
	size_t i = holder_of(t, addr);

	if (i == t->nr_pieces)
		return false;
	*out = t->pieces[i];
	out->start = addr;
	if (t->pieces[i].start < addr) {
		t->pieces[i].end = addr;
		t->regions[out->region].nr_pieces++;
	} else {
		region_table_replace(t, i, 1, NULL, 0);
	}
	return true;
}

bool region_table_put(struct region_table *t, const struct region_piece *piece)
{
	size_t i = first_below(t, piece->end);

	if (i < t->nr_pieces && t->pieces[i].end > piece->start)
		return false;
	region_table_replace(t, i, 0, piece, 1);
	return true;
}

const struct region_piece *region_table_find(const struct region_table *t, taddr_t addr)
{
	size_t i = holder_of(t, addr);

	return i < t->nr_pieces ? &t->pieces[i] : NULL;
}

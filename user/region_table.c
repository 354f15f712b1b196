/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Live mmap blocks: a sorted array of the pieces that are left, each pointing to what its mmap made. */
#include "user/region_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

/* Room for two more in *@array of *@max items of @size bytes, @nr of them in use. */
static int make_room(struct budget *budget, void **array, size_t *max, size_t nr, size_t size)
{
	size_t new_max = *max + *max / 2 + 16;
	void *p;

	if (*max - nr >= 2)
		return 0;
	if (new_max >= UINT32_MAX || !budget_take(budget, (new_max - *max) * size))
		return -ENOMEM;
	p = realloc(*array, new_max * size);
	if (!p) {
		budget_give(budget, (new_max - *max) * size);
		return -ENOMEM;
	}
	*array = p;
	*max = new_max;
	return 0;
}

/* One slot for a second piece of a split, one for a piece that is put back. */
int region_table_reserve(struct region_table *t)
{
	int err = make_room(t->budget, (void **)&t->pieces, &t->max_pieces, t->nr_pieces, sizeof(*t->pieces));

	if (err)
		return err;
	return make_room(t->budget, (void **)&t->regions, &t->max_regions, t->nr_regions,
			 sizeof(*t->regions));
}

static int copy_array(struct budget *budget, void **out, const void *from, size_t bytes)
{
	*out = NULL;
	if (!bytes)
		return 0;
	if (!budget_take(budget, bytes))
		return -ENOMEM;
	*out = malloc(bytes);
	if (!*out) {
		budget_give(budget, bytes);
		return -ENOMEM;
	}
	memcpy(*out, from, bytes);
	return 0;
}

int region_table_copy(struct region_table *out, const struct region_table *t, struct budget *budget)
{
	int err;

	region_table_init(out, budget);
	err = copy_array(budget, (void **)&out->pieces, t->pieces, t->nr_pieces * sizeof(*t->pieces));
	if (err)
		return err;
	out->nr_pieces = t->nr_pieces;
	out->max_pieces = t->nr_pieces;
	err = copy_array(budget, (void **)&out->regions, t->regions, t->nr_regions * sizeof(*t->regions));
	if (err) {
		region_table_fini(out);
		return err;
	}
	out->nr_regions = t->nr_regions;
	out->max_regions = t->nr_regions;
	out->first_free = t->first_free;
	return 0;
}

/* Index of the first piece, going down, that begins below @addr. */
static size_t first_below(const struct region_table *t, taddr_t addr)
{
	size_t low = 0;
	size_t high = t->nr_pieces;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (t->pieces[mid].start < addr)
			high = mid;
		else
			low = mid + 1;
	}
	return low;
}

/* Make @nr_new pieces of the @nr_old from @at on. */
static void replace(struct region_table *t, size_t at, size_t nr_old, const struct region_piece *pieces,
		    size_t nr_new)
{
	size_t nr_behind = t->nr_pieces - at - nr_old;

	memmove(&t->pieces[at + nr_new], &t->pieces[at + nr_old], nr_behind * sizeof(*t->pieces));
	for (size_t i = 0; i < nr_new; i++)
		t->pieces[at + i] = pieces[i];
	t->nr_pieces = t->nr_pieces - nr_old + nr_new;
}

void region_table_add(struct region_table *t, taddr_t start, taddr_t end, const struct region *region)
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
	replace(t, first_below(t, start), 0, &piece, 1);
}

bool region_table_release(struct region_table *t, const struct region_piece *piece)
{
	struct region *r = &t->regions[piece->region];

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
	replace(t, first, i - first, rest, nr_rest);
}

/* Index of the piece that holds @addr, or nr_pieces. */
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
		replace(t, i, 1, NULL, 0);
	}
	return true;
}

bool region_table_put(struct region_table *t, const struct region_piece *piece)
{
	size_t i = first_below(t, piece->end);

	if (i < t->nr_pieces && t->pieces[i].end > piece->start)
		return false;
	replace(t, i, 0, piece, 1);
	return true;
}

const struct region_piece *region_table_find(const struct region_table *t, taddr_t addr)
{
	size_t i = holder_of(t, addr);

	return i < t->nr_pieces ? &t->pieces[i] : NULL;
}

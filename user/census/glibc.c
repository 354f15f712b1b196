/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The walk through glibc's books: first all memory that belongs to it, then the chunks by address. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "user/census/glibc.h"
#include "user/lib/cleanup.h"

enum { MAX_COPIES = 4 }; /* of glibc in a process: dlmopen() loads more */

struct glibc_copies {
	struct glibc of[MAX_COPIES];
	size_t nr;
};

/* Find all copies, their arenas and mapped blocks. */
static int glibc_find_all(struct glibc_copies *copies, struct census_walk *w)
{
	size_t map = 0;
	int err = 0;

	while (!err && copies->nr < MAX_COPIES) {
		struct glibc *g = &copies->of[copies->nr];

		*g = (struct glibc){ .w = w, .out = w->out };
		err = glibc_find(g, &map);
		if (err)
			break;
		copies->nr++;
		err = glibc_add_arenas(g);
		if (!err)
			err = glibc_find_counters(g);
		if (!err)
			err = glibc_add_mapped(g);
	}
	if (err == -ENOENT)
		return copies->nr ? 0 : -ENOENT;
	return err;
}

static struct glibc *copy_of(struct glibc_copies *copies, u32 arena)
{
	for (size_t i = 0; i + 1 < copies->nr; i++)
		if (arena < copies->of[i + 1].first_arena)
			return &copies->of[i];
	return &copies->of[copies->nr - 1];
}

/* The bytes that the program has of a block with a mapping of its own. Since 2.43 a header at the end is left free. */
static int add_mapped_block(const struct glibc *g, struct census_segment *segment)
{
	taddr_t chunk = segment->first, mem = chunk + glibc_header(g);
	u64 tail = g->layout.nr_fast == 0 ? g->layout.w : 0, word;
	u32 type = 0;
	int err = census_words(g->w, mem, &word, 1) ? census_type_of(g->w, word, &type) : 0;

	segment->first = g->out->nr;
	segment->nr = 1;
	return err ? err : census_add_block(g->out, mem, segment->end - mem - tail, type);
}

/* Sort the segments. One that begins within another is not walked: no memory has two owners. */
static void drop_overlaps(struct census_blocks *out)
{
	size_t nr = 0;

	census_sort_segments(out);
	for (size_t i = 0; i < out->nr_segments; i++) {
		const struct census_segment *segment = &out->segments[i];

		if (!nr || segment->start >= out->segments[nr - 1].end) {
			out->segments[nr++] = *segment;
			continue;
		}
		census_note(out, segment->start, "two parts of memory overlap");
		if (!segment->is_mapped)
			out->arenas[segment->arena].nr_segments--;
	}
	out->nr_segments = nr;
}

static int walk_all(struct glibc_copies *copies, struct census_walk *w)
{
	struct census_blocks *out = w->out;
	auto_free struct glibc_links *links = calloc(out->nr_arenas, sizeof(*links));
	int err = links ? 0 : -ENOMEM;

	drop_overlaps(out);
	for (size_t i = 0; i < out->nr_segments && !err; i++) {
		struct census_segment *segment = &out->segments[i];
		struct glibc *g = copy_of(copies, segment->arena);

		if (segment->is_mapped) {
			err = add_mapped_block(g, segment);
			continue;
		}
		segment->first = out->nr;
		err = glibc_walk_segment(g, segment, &links[segment->arena]);
		segment->nr = out->nr - segment->first;
	}
	for (size_t i = 0; i < copies->nr && !err; i++)
		err = glibc_mark_free(&copies->of[i]);
	for (u32 i = 0; i < out->nr_arenas && !err; i++) {
		glibc_check_bins(copy_of(copies, i), i, &links[i]);
		err = census_check_time(w);
	}
	return err;
}

static void name_version(struct census_blocks *out, const struct glibc *g)
{
	snprintf(out->version, sizeof(out->version), "%s",
		 g->layout.nr_fast ? "2.27 to 2.42" : "2.43 or later");
}

int glibc_is_there(struct census_walk *w)
{
	struct glibc g = { .w = w, .out = w->out };
	size_t map = 0;

	return glibc_find(&g, &map);
}

int glibc_walk(struct census_walk *w)
{
	auto_free struct glibc_copies *copies = calloc(1, sizeof(*copies));
	int err = copies ? glibc_find_all(copies, w) : -ENOMEM;

	if (!err)
		err = walk_all(copies, w);
	if (!err)
		name_version(w->out, &copies->of[0]);
	for (size_t i = 0; copies && i < copies->nr; i++)
		free(copies->of[i].tables);
	return err;
}

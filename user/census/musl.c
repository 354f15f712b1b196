/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The walk through the books of musl's malloc: all groups, then all blocks by address. */
#include "user/census/musl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "user/census/census_runs.h"
#include "user/lib/array.h"
#include "user/lib/cleanup.h"

/* Finds the books of musl's malloc in the data of libc, or of a static program, by its secret number. */

/*
 * The structure begins with the secret, of 64 bits; the address of the first page of descriptions follows. This page
 * begins with the same number. Where the size of a page is not fixed, it lies between them.
 */

enum {
	MAX_DATA = 4 << 20, /* bytes of a file's data that are searched */
	CHECK_EVERY = 4096, /* words between two looks at the clock */
};

static u64 secret_of(const struct census_walk *w, const u8 *p)
{
	u64 first = census_word_of(w, p), second = w->w == 4 ? census_word_of(w, p + 4) : 0;

	if (w->w == 8)
		return first;
	return w->snap->is_big_endian ? first << 32 | second : second << 32 | first;
}

/* Does a page of descriptions lie at @addr? */
static bool musl_is_area(const struct musl *m, taddr_t addr)
{
	const struct snapshot_map *map =
		addr && addr % MUSL_AREA == 0 ? snapshot_map_find(m->w->snap, addr) : NULL;
	u8 check[8];

	return map && census_is_anonymous(map) && snapshot_fetch(m->w->snap, addr, check, 8) == 0 &&
	       secret_of(m->w, check) == m->secret;
}

/* Is the page at @addr one of descriptions, one of which has a group that names it? */
static bool musl_find_is_proved(const struct musl *m, taddr_t addr)
{
	u32 header, size, nr = musl_is_area(m, addr) ? musl_descriptions(m, addr, &header, &size) : 0;

	for (u32 i = 0; i < nr; i++) {
		struct musl_group g;

		if (!musl_read_group(m, addr + header + (u64)i * size, &g))
			return true;
	}
	return false;
}

/* Look for the structure in @len bytes of data at @p. */
static int musl_find_look(struct musl *m, const u8 *p, size_t len)
{
	u8 w = m->w->w;
	/* After the secret: two numbers of 32 bits, five words, then the address. */
	size_t to_area = 8 + 8 + 5U * w;

	for (size_t at = 0; at + to_area + 2U * w <= len; at += w) {
		m->secret = secret_of(m->w, p + at);
		if (at / w % CHECK_EVERY == 0 && census_check_time(m->w))
			return -ETIME;
		for (u32 extra = 0; m->secret && extra < 2; extra++) {
			m->area = census_word_of(m->w, p + at + to_area + extra * w);
			if (musl_find_is_proved(m, m->area))
				return 0;
		}
	}
	return -ENOENT;
}

/* Find the secret and the first page of descriptions. 0, -ENOENT, -ENOMEM or -ETIME. */
static int musl_find(struct musl *m)
{
	const struct snapshot *snap = m->w->snap;
	auto_free u8 *bytes = malloc(MAX_DATA);
	int err = bytes ? -ENOENT : -ENOMEM;

	for (size_t i = 0; i < snap->nr_maps && err == -ENOENT; i++) {
		taddr_t start = snap->maps[i].start, end = page_reader_data_end(snap, i);
		size_t len = end - start < MAX_DATA ? end - start : MAX_DATA;

		if (!end)
			continue;
		census_copy_data(m->w, start, bytes, len);
		err = musl_find_look(m, bytes, len);
	}
	return err;
}

enum {
	MAX_DAMAGED = 16, /* damages that are noted one by one */
};

static void musl_note_damage(struct musl *m, taddr_t addr, const char *what)
{
	if (m->nr_damaged++ < MAX_DAMAGED)
		census_note(m->w->out, addr, "%s at 0x%llx is damaged", what, (unsigned long long)addr);
}

static int musl_enter_slots(struct musl *m, const struct musl_group *g)
{
	struct census_arena *arena = &m->w->out->arenas[0];
	int err = 0;

	for (u32 i = 0; i < g->nr && !err; i++) {
		taddr_t addr;
		u64 size;
		int is_block = g->free >> i & 1 ? -ENOENT : musl_read_block(m, g, i, &addr, &size);

		if (g->free >> i & 1) {
			arena->bins.blocks++;
			arena->bins.bytes += g->stride;
		} else if (is_block == -EINVAL) {
			arena->unknown_bytes += g->stride;
			musl_note_damage(m, addr, "the block");
		} else if (is_block == 0) {
			err = census_enter_block(m->w, addr, size);
		}
	}
	return err;
}

static int enter_group(struct musl *m, taddr_t meta)
{
	struct musl_group g;
	int err = musl_read_group(m, meta, &g);

	if (err == -ENOENT)
		return 0;
	if (err) {
		musl_note_damage(m, meta, "the description of a group");
		return 0;
	}
	err = array_reserve(m->groups, m->max_groups, m->nr_groups + 1);
	if (err)
		return err;
	m->groups[m->nr_groups++] = g;
	return musl_enter_slots(m, &g);
}

/* All descriptions of the page at @area; *@next is the next page. */
static int walk_area(struct musl *m, taddr_t area, taddr_t *next)
{
	u32 header, size, nr = musl_descriptions(m, area, &header, &size);
	u64 word;
	int err = 0;

	*next = 0;
	if (!nr || !census_words(m->w, area + 8, &word, 1)) {
		musl_note_damage(m, area, "a page of descriptions");
		return 0;
	}
	*next = word;
	for (u32 i = 0; i < nr && !err; i++)
		err = enter_group(m, area + header + (u64)i * size);
	return err;
}

/* Remember the page at @area. 0; -EEXIST it was read before; -ENOMEM. */
static int see_area(struct musl *m, taddr_t area)
{
	u64 hash = hash_u64(area);
	u32 item, at = 0;
	int err;

	while ((item = hash_index_next(&m->seen, hash, &at)) != HASH_NO_ITEM)
		if (m->areas[item] == area)
			return -EEXIST;
	err = array_reserve(m->areas, m->max_areas, m->nr_areas + 1);
	if (!err)
		err = hash_index_add(&m->seen, hash, (u32)m->nr_areas);
	if (!err)
		m->areas[m->nr_areas++] = area;
	return err;
}

static int walk_areas(struct musl *m)
{
	taddr_t area = m->area;
	int err = 0;

	while (area && !err) {
		taddr_t next = 0;

		err = musl_is_area(m, area) ? see_area(m, area) : -EEXIST;
		if (err == -EEXIST) {
			musl_note_damage(m, area, "the list of pages of descriptions");
			return 0;
		}
		if (!err)
			err = walk_area(m, area, &next);
		if (!err)
			err = census_check_time(m->w);
		area = next;
	}
	return err;
}

static int musl_by_addr(const void *a, const void *b)
{
	const struct census_block *x = a, *y = b;

	return (x->addr > y->addr) - (x->addr < y->addr);
}

static int by_base(const void *a, const void *b)
{
	const struct musl_group *x = a, *y = b;

	return (x->base > y->base) - (x->base < y->base);
}

/* A segment for each group that no other group holds. */
static int add_segments(struct musl *m)
{
	struct census_blocks *out = m->w->out;
	taddr_t end = 0;
	size_t at = 0;
	int err = 0;

	for (size_t i = 0; i < m->nr_groups && !err; i++) {
		const struct musl_group *g = &m->groups[i];
		struct census_segment s = { .start = g->base, .is_mapped = g->is_alone };

		if (g->base < end)
			continue;
		end = s.end = g->base + (g->mapped ? g->mapped : MUSL_UNIT + g->nr * g->stride);
		while (at < out->nr && out->blocks[at].addr < s.start)
			at++;
		s.first = at;
		while (at < out->nr && out->blocks[at].addr < end)
			at++;
		s.nr = at - s.first;
		if (!g->is_alone) {
			out->arenas[0].system_bytes += end - s.start;
			out->arenas[0].nr_segments++;
		}
		err = s.is_mapped && s.nr != 1 ? 0 : census_add_segment(out, &s);
	}
	return err;
}

static int census_musl_walk(struct musl *m)
{
	const struct census_arena arena = { .addr = m->area };
	struct census_blocks *out = m->w->out;
	int err = census_add_arena(out, &arena);

	if (!err)
		err = walk_areas(m);
	if (err)
		return err;
	if (out->nr)
		qsort(out->blocks, out->nr, sizeof(*out->blocks), musl_by_addr);
	if (m->nr_groups)
		qsort(m->groups, m->nr_groups, sizeof(*m->groups), by_base);
	if (m->nr_damaged > MAX_DAMAGED)
		census_note(out, 0, "%zu parts of the books are damaged", m->nr_damaged);
	snprintf(out->version, sizeof(out->version), "1.2.1 or later");
	return add_segments(m);
}

int musl_is_there(struct census_walk *w)
{
	struct musl m = { .w = w };

	return musl_find(&m);
}

int musl_walk(struct census_walk *w)
{
	struct musl m = { .w = w };
	int err = musl_find(&m);

	if (!err)
		err = census_musl_walk(&m);
	free(m.groups);
	free(m.areas);
	hash_index_fini(&m.seen);
	return err;
}

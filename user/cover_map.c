/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Bytes that blocks have covered, for scans of processes that were attached to. */
#include "user/cover_map.h"

#include <stdlib.h>
#include <string.h>

enum {
	PAGE_SHIFT = 20,
	PAGE_GRANULES = (1 << PAGE_SHIFT) / COVER_GRANULE,
	PAGE_WORDS = PAGE_GRANULES / 64,
	PAGE_BYTES = PAGE_WORDS * 8,
	FIRST_PAGES = 64,
	MAX_PAGES = (64 << 20) / PAGE_BYTES,
	MAX_BLOCK = 32 << 20, /* larger ones get mappings of their own, which go when they do */
};

void cover_map_init(struct cover_map *m, struct budget *budget)
{
	memset(m, 0, sizeof(*m));
	m->budget = budget;
}

void cover_map_fini(struct cover_map *m)
{
	for (size_t i = 0; i < m->capacity; i++)
		free(m->pages[i].bits);
	free(m->pages);
	memset(m, 0, sizeof(*m));
}

/* The slot of page @number: its own, or an empty one. There is always one. */
static struct cover_page *slot_of(const struct cover_map *m, u64 number)
{
	size_t i = (size_t)(number * 0x9e3779b97f4a7c15ULL >> 32) & (m->capacity - 1);

	while (m->pages[i].bits && m->pages[i].number != number)
		i = (i + 1) & (m->capacity - 1);
	return &m->pages[i];
}

/* Room for one page more: at most half of the slots are taken. */
static bool make_room(struct cover_map *m)
{
	struct cover_map larger = *m;

	if (m->nr * 2 < m->capacity)
		return true;
	larger.capacity = m->capacity ? m->capacity * 2 : FIRST_PAGES;
	if (!budget_take(m->budget, (larger.capacity - m->capacity) * sizeof(*m->pages)))
		return false;
	larger.pages = calloc(larger.capacity, sizeof(*larger.pages));
	if (!larger.pages) {
		budget_give(m->budget, (larger.capacity - m->capacity) * sizeof(*m->pages));
		return false;
	}
	for (size_t i = 0; i < m->capacity; i++)
		if (m->pages[i].bits)
			*slot_of(&larger, m->pages[i].number) = m->pages[i];
	free(m->pages);
	*m = larger;
	return true;
}

/* The bits of page @number, made if need be; NULL without memory. */
static u64 *bits_of(struct cover_map *m, u64 number)
{
	struct cover_page *page;
	u64 *bits;

	if (m->last.bits && m->last.number == number)
		return m->last.bits;
	if (m->nr >= MAX_PAGES || !make_room(m))
		return NULL;
	page = slot_of(m, number);
	if (!page->bits) {
		if (!budget_take(m->budget, PAGE_BYTES))
			return NULL;
		bits = calloc(PAGE_WORDS, sizeof(*bits));
		if (!bits) {
			budget_give(m->budget, PAGE_BYTES);
			return NULL;
		}
		*page = (struct cover_page){ .number = number, .bits = bits };
		m->nr++;
	}
	m->last = *page;
	return page->bits;
}

static void set_bits(u64 *bits, u32 from, u32 to)
{
	while (from < to) {
		u32 word = from / 64, shift = from % 64, nr = 64 - shift < to - from ? 64 - shift : to - from;

		bits[word] |= (nr == 64 ? ~0ULL : (1ULL << nr) - 1) << shift;
		from += nr;
	}
}

void cover_map_add(struct cover_map *m, taddr_t addr, u64 size)
{
	u64 granule, last;

	/* A granule that the block begins inside may be another's too. */
	if (size > MAX_BLOCK || addr > UINT64_MAX - 2 * MAX_BLOCK)
		return;
	granule = (addr + COVER_GRANULE - 1) / COVER_GRANULE;
	last = (addr + size + COVER_GRANULE - 1) / COVER_GRANULE;
	while (granule < last) {
		u64 number = granule / PAGE_GRANULES, next = (number + 1) * PAGE_GRANULES;
		u64 *bits = bits_of(m, number);

		if (bits)
			set_bits(bits, granule % PAGE_GRANULES,
				 last < next ? (u32)(last % PAGE_GRANULES) : PAGE_GRANULES);
		granule = next;
	}
}

static bool is_set(const u64 *bits, u64 granule)
{
	u64 i = granule % PAGE_GRANULES;

	return bits && bits[i / 64] >> (i % 64) & 1;
}

taddr_t cover_map_run(const struct cover_map *m, taddr_t addr, taddr_t end, bool *is_covered)
{
	const u64 *bits = NULL;
	taddr_t at = addr;

	for (; at < end; at = at / COVER_GRANULE * COVER_GRANULE + COVER_GRANULE) {
		u64 granule = at / COVER_GRANULE;

		if (at == addr || granule % PAGE_GRANULES == 0)
			bits = m->capacity ? slot_of(m, granule / PAGE_GRANULES)->bits : NULL;
		if (at == addr)
			*is_covered = is_set(bits, granule);
		else if (is_set(bits, granule) != *is_covered)
			break;
	}
	return at < end ? at : end;
}

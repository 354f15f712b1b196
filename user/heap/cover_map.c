/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The bytes that blocks have covered, one bit for 16 bytes, for scans of processes that were attached to. */
#include "user/heap/cover_map.h"

#include <stdlib.h>

enum {
	PAGE_SHIFT = 20,
	PAGE_GRANULES = (1 << PAGE_SHIFT) / COVER_GRANULE,
	PAGE_WORDS = PAGE_GRANULES / 64,
	PAGE_BYTES = PAGE_WORDS * 8,
	MAX_PAGES = (64 << 20) / PAGE_BYTES,
	MAX_BLOCK =
		32 << 20, /* bytes; a larger block is a mapping of its own, which is gone after its free */
};

void cover_map_init(struct cover_map *m, struct budget *budget)
{
	*m = (struct cover_map){ .budget = budget };
}

void cover_map_fini(struct cover_map *m)
{
	for (size_t i = 0; i < m->nr; i++)
		free(m->pages[i].bits);
	free(m->pages);
	hash_index_fini(&m->index);
	*m = (struct cover_map){ 0 };
}

/* The bits of page @number, NULL if it does not exist. */
static u64 *find_bits(const struct cover_map *m, u64 number)
{
	u32 at = 0, page;

	while ((page = hash_index_next(&m->index, hash_u64(number), &at)) != HASH_NO_ITEM)
		if (m->pages[page].number == number)
			return m->pages[page].bits;
	return NULL;
}

/* Make the page @number. NULL without memory. */
static u64 *cover_map_add_page(struct cover_map *m, u64 number)
{
	u64 *bits;

	if (m->nr >= MAX_PAGES || budget_array(m->budget, m->pages, m->max, m->nr + 1) ||
	    budget_index(m->budget, &m->index, m->nr + 1) || !budget_take(m->budget, PAGE_BYTES))
		return NULL;
	bits = calloc(PAGE_WORDS, sizeof(*bits));
	if (!bits || hash_index_add(&m->index, hash_u64(number), (u32)m->nr)) {
		free(bits);
		budget_give(m->budget, PAGE_BYTES);
		return NULL;
	}
	m->pages[m->nr++] = (struct cover_page){ .number = number, .bits = bits };
	return bits;
}

/* The bits of page @number, which is made if it does not exist. NULL without memory. */
static u64 *bits_of(struct cover_map *m, u64 number)
{
	u64 *bits;

	if (m->last.bits && m->last.number == number)
		return m->last.bits;
	bits = find_bits(m, number);
	if (!bits)
		bits = cover_map_add_page(m, number);
	if (bits)
		m->last = (struct cover_page){ .number = number, .bits = bits };
	return bits;
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

	/* A block that begins inside a granule may share it with another block: its own granules begin behind. */
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
			bits = find_bits(m, granule / PAGE_GRANULES);
		if (at == addr)
			*is_covered = is_set(bits, granule);
		else if (is_set(bits, granule) != *is_covered)
			break;
	}
	return at < end ? at : end;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The list of blocks that a walk fills, and its sums. */
#include "user/census/census_blocks.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "user/lib/array.h"

void census_blocks_fini(struct census_blocks *b)
{
	free(b->blocks);
	free(b->segments);
	free(b->arenas);
	free(b->types);
	memset(b, 0, sizeof(*b));
}

int census_add_block(struct census_blocks *b, taddr_t addr, u64 size, u32 type)
{
	int err;

	if (addr >> 56 || size >> 44)
		return -EOVERFLOW;
	err = array_reserve(b->blocks, b->max, b->nr + 1);
	if (!err)
		b->blocks[b->nr++] = (struct census_block){ .addr = addr, .size = size, .type = type };
	return err;
}

int census_add_segment(struct census_blocks *b, const struct census_segment *segment)
{
	int err = array_reserve(b->segments, b->max_segments, b->nr_segments + 1);

	if (!err)
		b->segments[b->nr_segments++] = *segment;
	return err;
}

int census_add_arena(struct census_blocks *b, const struct census_arena *arena)
{
	int err = array_reserve(b->arenas, b->max_arenas, b->nr_arenas + 1);

	if (!err)
		b->arenas[b->nr_arenas++] = *arena;
	return err;
}

static int census_blocks_by_start(const void *a, const void *b)
{
	const struct census_segment *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

void census_sort_segments(struct census_blocks *b)
{
	if (b->nr_segments)
		qsort(b->segments, b->nr_segments, sizeof(*b->segments), census_blocks_by_start);
}

void census_note(struct census_blocks *b, taddr_t addr, const char *format, ...)
{
	struct census_note *note;
	va_list args;

	if (b->nr_notes++ >= CENSUS_MAX_NOTES)
		return;
	note = &b->notes[b->nr_notes - 1];
	note->addr = addr;
	va_start(args, format);
	vsnprintf(note->text, sizeof(note->text), format, args);
	va_end(args);
}

struct census_block *census_find(const struct census_blocks *b, taddr_t addr)
{
	size_t at = array_search(i, 0, b->nr, b->blocks[i].addr < addr);

	return at < b->nr && b->blocks[at].addr == addr ? &b->blocks[at] : NULL;
}

const struct census_segment *census_segment_at(const struct census_blocks *b, taddr_t addr)
{
	size_t at = array_search(i, 0, b->nr_segments, b->segments[i].end <= addr);

	return at < b->nr_segments && b->segments[at].start <= addr ? &b->segments[at] : NULL;
}

static void census_blocks_add(struct census_sum *sum, u64 bytes)
{
	sum->blocks++;
	sum->bytes += bytes;
}

static void census_blocks_add_segment(struct census_blocks *b, const struct census_segment *segment)
{
	struct census_arena *arena = &b->arenas[segment->arena];

	for (size_t i = segment->first; i < segment->first + segment->nr; i++) {
		const struct census_block *block = &b->blocks[i];

		if (segment->is_mapped)
			census_blocks_add(&b->mapped, block->size);
		else
			census_blocks_add(&arena->of[block->state], block->size);
		if (block->state == CENSUS_LIVE && block->type)
			census_blocks_add(&b->types[block->type].live, block->size);
	}
	if (segment->is_mapped)
		b->mapped_bytes += segment->end - segment->start;
}

void census_add_up(struct census_blocks *b)
{
	for (size_t i = 0; i < b->nr_segments; i++)
		census_blocks_add_segment(b, &b->segments[i]);
	for (size_t i = 0; i < b->nr_arenas; i++) {
		struct census_arena *arena = &b->arenas[i];
		u64 known = arena->bins.bytes + arena->top_bytes + arena->page_bytes + arena->unknown_bytes +
			    arena->foreign_bytes;

		for (int s = 0; s < NR_CENSUS_STATES; s++)
			known += s == CENSUS_OWN ? 0 : arena->of[s].bytes;
		arena->other_bytes = arena->system_bytes > known ? arena->system_bytes - known : 0;
	}
}

struct census_sum census_live(const struct census_blocks *b)
{
	struct census_sum sum = b->mapped;

	for (size_t i = 0; i < b->nr_arenas; i++) {
		sum.blocks += b->arenas[i].of[CENSUS_LIVE].blocks;
		sum.bytes += b->arenas[i].of[CENSUS_LIVE].bytes;
	}
	return sum;
}

u64 census_free_bytes(const struct census_blocks *b)
{
	u64 bytes = 0;

	for (size_t i = 0; i < b->nr_arenas; i++) {
		const struct census_arena *arena = &b->arenas[i];

		bytes += arena->bins.bytes + arena->top_bytes + arena->page_bytes +
			 arena->of[CENSUS_CACHED].bytes + arena->of[CENSUS_FAST].bytes;
	}
	return bytes;
}

u64 census_unknown_bytes(const struct census_blocks *b)
{
	u64 bytes = 0;

	for (size_t i = 0; i < b->nr_arenas; i++)
		bytes += b->arenas[i].unknown_bytes;
	return bytes;
}

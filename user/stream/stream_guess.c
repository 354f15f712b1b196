/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Guess addresses of new blocks, so that a stream need not say them. */
#include "user/stream/stream_guess.h"

#include "user/lib/array.h"

enum { UNIT = 16, HEADER = 8, CLASSES_BITS = 7 };

static u64 units_of(u64 size)
{
	const u64 units = (size + HEADER + UNIT - 1) / UNIT;

	return units < 2 ? 2 : units;
}

/* Small blocks have a class for each size, larger ones share the second half. */
static u32 class_of(u64 size)
{
	const u64 units = units_of(size);

	return units < GUESS_CLASSES / 2
		       ? (u32)units
		       : GUESS_CLASSES / 2 + (u32)(units * 0x9e3779b97f4a7c15ULL >> (65 - CLASSES_BITS));
}

void stream_guess_begin(struct stream_guess *g, u32 bits)
{
	array_clear(g, sizeof(*g));
	g->bits = bits;
}

u64 stream_guess_addr(const struct stream_guess *g, u64 size)
{
	const u32 class = class_of(size);

	return g->nr[class] ? g->freed[class][(g->first[class] + g->nr[class] - 1) % GUESS_DEPTH] : g->next;
}

void stream_guess_learn(struct stream_guess *g, const struct heap_event *ev)
{
	const u32 slot = (u32)(ev->addr * 0x9e3779b97f4a7c15ULL >> (64 - g->bits));
	u32 class = class_of(ev->size);

	if (!ev->addr || ev->h.kind == EVENT_REALLOC_BEGIN)
		return;
	if (ev->h.kind != EVENT_FREE) {
		/* Another address than the guess: what was freed stays, as others may get it. */
		if (g->nr[class] && stream_guess_addr(g, ev->size) == ev->addr)
			g->nr[class]--;
		g->blocks[slot] = ev->addr;
		g->classes[slot] = (u8) class;
		g->next = ev->addr + units_of(ev->size) * UNIT;
		return;
	}
	if (g->blocks[slot] != ev->addr)
		return;
	g->blocks[slot] = 0;
	class = g->classes[slot];
	g->freed[class][(g->first[class] + g->nr[class]) % GUESS_DEPTH] = ev->addr;
	if (g->nr[class] < GUESS_DEPTH)
		g->nr[class]++;
	else
		g->first[class] = (g->first[class] + 1) % GUESS_DEPTH;
}

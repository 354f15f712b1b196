/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Arenas and heaps in the memory of a process that exists only in a test, and a walk through them. */
#pragma once

#include "tests/unit/glibc_books.h"

static inline void put_arena(struct process *p, taddr_t arena, taddr_t next, taddr_t top, u64 system)
{
	for (u32 i = 0; i < 127; i++) {
		put(p, arena + BINS + 16 * i, arena + BINS + 16 * i - 16);
		put(p, arena + BINS + 16 * i + 8, arena + BINS + 16 * i - 16);
	}
	put(p, arena + TOP, top ? top : arena + TOP);
	put(p, arena + NEXT, next);
	put(p, arena + SYSTEM, system);
}

/* A heap with NR_CHUNKS chunks behind its header, then one with the rest. Returns the address of that one. */
static inline taddr_t put_heap(struct process *p, taddr_t heap, taddr_t before, taddr_t first)
{
	put(p, heap, ARENA);
	put(p, heap + 8, before);
	put(p, heap + 16, SIZE);
	put(p, heap + 24, SIZE);
	for (u32 i = 0; i < NR_CHUNKS; i++, first += CHUNK)
		put(p, first + 8, CHUNK | 1);
	put(p, first + 8, (heap + SIZE - first) | 1);
	return first;
}

/* A second arena with heaps at FIRST, SECOND and THIRD; the heap before each is as told. */
static inline struct process *with_heaps(taddr_t before_second, taddr_t before_third, u64 system)
{
	struct process *p = process_new();
	taddr_t top, first = (ARENA + ARENA_SIZE + 15) / 16 * 16;

	add(p, FIRST, SIZE, true);
	add(p, SECOND, SIZE, true);
	add(p, THIRD, SIZE, true);
	add_libc(p);
	put_heap(p, FIRST, 0, first);
	put_heap(p, SECOND, before_second, SECOND + HEADER);
	top = put_heap(p, THIRD, before_third, THIRD + HEADER);
	put_arena(p, MAIN, ARENA, 0, 0);
	put_arena(p, ARENA, MAIN, top, system);
	return p;
}

static inline int walk(struct process *p, u64 deadline_ns)
{
	struct census_walk w;
	int err = census_walk_init(&w, &p->snap, &p->blocks, deadline_ns);

	assert_int_equal(err, 0);
	err = glibc_walk(&w);
	if (!err)
		census_add_up(&p->blocks);
	census_walk_fini(&w);
	return err;
}

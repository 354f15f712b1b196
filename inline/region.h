/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The memory of the piece, found by the piece itself; stamps. */
#pragma once

#include "inline/cpu.h"
#include "inline/layout.h"
#include "inline/piece.h"

enum { PIECE_AHEAD = 8 };

static inline void *at_offset(u64 offset)
{
	u64 head = (u64)(uintptr_t)piece_head;

	/* The compiler must not see where this comes from: what lies behind the constant code is no constant. */
	asm("" : "+r"(head));
	return (void *)(uintptr_t)(head + offset);
}

static inline struct piece_control *region_control(void)
{
	return at_offset(PIECE_CONTROL_OFFSET);
}

static inline struct piece_private *region_private(void)
{
	return at_offset(PIECE_PRIVATE_OFFSET);
}

/* Place @nr is mapped. */
static inline struct piece_place *place_at(u32 nr)
{
	return (struct piece_place *)at_offset(PIECE_PLACES_OFFSET) + nr;
}

static inline struct piece_samples *region_samples(void)
{
	return at_offset(PIECE_SAMPLES_OFFSET);
}

static inline struct piece_shared *region_shared(void)
{
	return at_offset(PIECE_SHARED_OFFSET);
}

static inline struct piece_tables *region_tables(void)
{
	return at_offset(PIECE_TABLES_OFFSET);
}

static inline bool is_on(void)
{
	return __atomic_load_n(&region_control()->is_on, __ATOMIC_RELAXED) == piece_is_on;
}

/* Thread with ring @r has written @nr records more. heaptap need not look at each ring to see that one fills. */
static inline __attribute__((always_inline)) void ring_add(struct piece_ring *r, u64 nr)
{
	u64 written = r->written;

	__atomic_store_n(&r->written, written + nr, __ATOMIC_RELEASE);
	if ((written ^ (written + nr)) & PIECE_RING_PART)
		__atomic_fetch_add(&region_shared()->nr_parts, 1, __ATOMIC_RELAXED);
}

/* The records that come next are in the cache of heaptap's CPU, and the next stamp would wait until they are here. */
static inline void fetch_ahead(struct piece_ring *r, u64 written)
{
	fetch_to_write(&r->records[(written + PIECE_AHEAD) % PIECE_RING_RECORDS]);
}

/*
 * Stamps order the records of all threads. Whoever is handed a block sees the record of its release, or allocation,
 * before its own stamp is taken: the fence keeps the counter from being read before the allocator's loads. A thread
 * that is alone is handed no block by another one.
 */
static inline __attribute__((always_inline)) u64 next_stamp(void)
{
	struct piece_shared *s = region_shared();

	if (s->is_sequence)
		return sequence_next(&s->sequence);
	if (!sequence_is_alone(&s->sequence))
		order_counter();
	return cpu_counter();
}

/* The function that is called, and why: enum piece_kind. */
static inline u32 regs_index(const struct piece_regs *regs)
{
	return (u32)regs->index % PIECE_MAX_PROBES;
}

static inline u32 regs_kind(const struct piece_regs *regs)
{
	return (u32)regs->index >> PIECE_KIND_SHIFT;
}

static inline const struct piece_probe *regs_probe(const struct piece_regs *regs)
{
	return &region_shared()->probes[regs_index(regs)];
}

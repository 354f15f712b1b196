/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A thread waits for heaptap, which may be stopped, dead or leaving. It cannot ask the time: the piece makes no system
 * call, and a program may forbid itself to read the CPU's counter (PR_SET_TSC). So threads that wait count their rounds
 * together, and their number is taken to be that of the CPUs that they use. The limits are where the target cannot
 * write, so one that overwrites memory waits no longer.
 */
#pragma once

#include "inline/region.h"

enum { WAIT_ROUNDS = 64 /* that are counted at once */ };

struct piece_wait {
	u64 from;     /* of the rounds of all threads */
	u64 progress; /* of heaptap */
	u32 rounds;
	bool is_over; /* it was too long */
};

/* End with wait_end(). */
static inline struct piece_wait wait_begin(void)
{
	const struct piece_shared *s = region_shared();

	return (struct piece_wait){ .from = __atomic_load_n(&s->waited, __ATOMIC_RELAXED),
				    .progress = __atomic_load_n(&s->progress, __ATOMIC_RELAXED) };
}

/* A jump out of a signal handler leaves a thread in the number, which makes waits longer. */
static inline void wait_end(const struct piece_wait *w)
{
	if (w->rounds)
		__atomic_fetch_sub(&region_shared()->nr_waiting, 1, __ATOMIC_RELAXED);
}

/* CPUs that threads wait on. */
static inline u64 wait_cpus(const struct piece_shared *s)
{
	u32 nr = __atomic_load_n(&s->nr_waiting, __ATOMIC_RELAXED);

	nr = nr < region_tables()->nr_cpus ? nr : region_tables()->nr_cpus;
	return nr ? nr : 1;
}

/* One round more. False: it is of no use. */
static inline bool wait_goes_on(struct piece_wait *w)
{
	struct piece_shared *s = region_shared();
	u64 progress = __atomic_load_n(&s->progress, __ATOMIC_RELAXED), waited;

	if (s->is_dropping || !is_on())
		return false;
	if (!w->rounds)
		__atomic_fetch_add(&s->nr_waiting, 1, __ATOMIC_RELAXED);
	if (!(w->rounds++ % WAIT_ROUNDS)) {
		waited = __atomic_fetch_add(&s->waited, WAIT_ROUNDS, __ATOMIC_RELAXED);
		if (progress != w->progress)
			w->from = waited;
		w->progress = progress;
		w->is_over = (waited - w->from) / wait_cpus(s) >= region_tables()->max_wait;
	}
	if (w->is_over)
		return false;
	relax_round();
	return true;
}

/* Is there room for @nr records, by what the target has seen last? */
static inline __attribute__((always_inline)) bool has_room_now(const struct piece_ring *r, u64 nr)
{
	return r->written + nr - r->read_seen <= PIECE_RING_RECORDS;
}

/* Is there room for a record, by what heaptap has read meanwhile? Never waits, and so needs no call. */
static inline __attribute__((always_inline)) bool has_room_at_last(struct piece_ring *r)
{
	if (!has_room_now(r, 1))
		r->read_seen = __atomic_load_n(&r->read, __ATOMIC_ACQUIRE);
	return has_room_now(r, 1);
}

/* Wait for room for @nr records, but not for ever. False: there is none. */
static __attribute__((noinline)) bool wait_for_room(struct piece_ring *r, u64 nr)
{
	struct piece_shared *s = region_shared();
	struct piece_wait w = wait_begin();
	bool is_there;

	do {
		r->read_seen = __atomic_load_n(&r->read, __ATOMIC_ACQUIRE);
		is_there = has_room_now(r, nr);
	} while (!is_there && wait_goes_on(&w));
	wait_end(&w);
	if (is_there ? s->is_dropping : w.is_over)
		s->is_dropping = !is_there;
	return is_there;
}

/* Is there room for @nr records? Waits for it if not. */
static inline __attribute__((always_inline)) bool has_room(struct piece_ring *r, u64 nr)
{
	return has_room_now(r, nr) || wait_for_room(r, nr);
}

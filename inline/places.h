/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The places of threads: how a thread finds its own, or takes one at its first call. Part of inline/piece.c. */
#pragma once

#include "inline/hold.h"
#include "inline/sample_draw.h"
#include "inline/wait.h"

enum { NO_THREAD = PIECE_MAX_THREADS };
/* Of the table of keys, for one thread: where it is nearly full, a thread without a place must not pay for a search. */
enum { MAX_LOOKS = 128 };

/* Where in the table the search for @key begins. */
static u32 first_slot(u64 key)
{
	/* A thread pointer is aligned to 8 bytes: the keys of a thread begin at one slot. */
	return (u32)((key & ~7ULL) * PIECE_HASH >> PIECE_HASH_SHIFT) % PIECE_MAX_THREADS;
}

/* Wait until more than @nr places are mapped, but not for ever. False: there are no more for now. */
static bool wait_for_place(u32 nr)
{
	struct piece_shared *s = region_shared();
	struct piece_wait w = wait_begin();
	bool is_there;

	do
		is_there = __atomic_load_n(&s->nr_places, __ATOMIC_ACQUIRE) > nr;
	while (!is_there && !s->is_full && wait_goes_on(&w));
	wait_end(&w);
	if (w.is_over)
		s->is_dropping = 1;
	return is_there;
}

/* Take a place that no thread has, and no thread will have later. NO_THREAD: there is none. */
static u32 take_place(u64 key)
{
	struct piece_shared *s = region_shared();
	u32 nr = __atomic_load_n(&s->nr_used, __ATOMIC_RELAXED);

	do
		if (nr >= PIECE_MAX_THREADS || !wait_for_place(nr))
			return NO_THREAD;
	while (!__atomic_compare_exchange_n(&s->nr_used, &nr, nr + 1, false, __ATOMIC_SEQ_CST,
					    __ATOMIC_SEQ_CST));
	place_at(nr)->thread.key = key;
	/* Before the thread is known: from then on a signal handler of it may have calls. */
	sequence_join(&s->sequence);
	return nr;
}

/* Write @key to @slot, which is free. False: another thread was first, and *@seen is what it has written. */
static bool piece_claim(struct piece_key *slot, u64 key, u32 place, u64 *seen)
{
	*seen = 0;
	if (!__atomic_compare_exchange_n(&slot->key, seen, PIECE_CLAIMED, false, __ATOMIC_SEQ_CST,
					 __ATOMIC_SEQ_CST))
		return false;
	slot->nr = place;
	slot->place = (u64)(uintptr_t)place_at(place);
	slot->ring = (u64)(uintptr_t)&region_shared()->rings[place];
	if (region_shared()->sample_bytes)
		sample_begin(slot, key);
	__atomic_store_n(&slot->key, key, __ATOMIC_RELEASE);
	return true;
}

/*
 * The entry of the thread with @key; NULL if it has none, and @is_new false or no room left. A signal handler of the
 * thread may take a place while the thread does: then the thread has two, and one is of no use.
 */
static __attribute__((noinline)) struct piece_key *find_key(u64 key, bool is_new)
{
	struct piece_key *keys = region_private()->keys;
	u32 at = first_slot(key), place = NO_THREAD;

	for (u32 i = 0; i < MAX_LOOKS; i++, at = (at + 1) % PIECE_MAX_THREADS) {
		u64 seen = __atomic_load_n(&keys[at].key, __ATOMIC_ACQUIRE);

		if (!seen) {
			if (is_new && place == NO_THREAD)
				place = take_place(key);
			if (place == NO_THREAD)
				return NULL;
			if (piece_claim(&keys[at], key, place, &seen))
				return &keys[at];
		}
		if (seen == key)
			return &keys[at];
	}
	return NULL;
}

/* The place of that thread, or NO_THREAD. */
static u32 find_thread(u64 key, bool is_new)
{
	const struct piece_key *k = find_key(key, is_new);

	return k ? k->nr : NO_THREAD;
}

/* The thread pointer names the thread. Bit 0 keeps the key from being 0. */
static u64 thread_key(void)
{
	return thread_pointer() | 1;
}

/* The key of a thread's place @nr: hooks that interrupt each other have places of their own. */
static u64 nested_key(u64 key, u32 nr)
{
	return key + 2 * nr;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A hook gets a place, a new one where jumps have left all places of its thread in use. Part of inline/piece.c. */
#pragma once

#include "inline/places.h"

/* Calls of a thread, one after the other, that are lost before it gets new places; so many more each time. */
enum { FEW_LOST = 4096, MAX_RENEWALS = 128 };

/* Place @nr keeps its calls, which return by a look at all keys, and gets no others. False: no room. */
static bool place_retire(u32 nr)
{
	struct piece_key *keys = region_private()->keys;
	u64 key = (u64)(uintptr_t)place_at(nr) | 1, seen;
	u32 at = first_slot(key);

	for (u32 i = 0; i < MAX_LOOKS; i++, at = (at + 1) % PIECE_MAX_THREADS)
		if (piece_claim(&keys[at], key, nr, &seen))
			return true;
	return false;
}

/*
 * All places of a thread have hooks. Jumps may have left these for good, from elsewhere on the stack than the thread
 * has its calls now; or coroutines wait in them. After many lost calls in a row it gets new ones, but for the first,
 * whose hook may look for it by the key again. NO_THREAD: not yet.
 */
static __attribute__((noinline)) u32 thread_renew(u64 key, u64 hook)
{
	u32 at = find_thread(key, false), nr;
	struct piece_thread *t = &place_at(at % PIECE_MAX_THREADS)->thread;

	if (at == NO_THREAD || t->nr_renewals >= MAX_RENEWALS)
		return NO_THREAD;
	nr = t->nr_renewals + 1;
	if (++t->nr_lost < FEW_LOST * nr)
		return NO_THREAD;
	t->nr_renewals = nr;
	t->nr_lost = 0;
	for (u32 i = PIECE_MAX_NESTED; i > 0; i--) {
		struct piece_key *k = find_key(nested_key(key, i), false);
		u32 old = k ? __atomic_load_n(&k->nr, __ATOMIC_RELAXED) : NO_THREAD;

		at = k ? take_place(k->key) : NO_THREAD;
		/* A coroutine may do the same at any moment: none of its places may be out of sight. */
		if (at == NO_THREAD || !place_retire(old) ||
		    !__atomic_compare_exchange_n(&k->nr, &old, at, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
			return NO_THREAD;
	}
	return place_hold(&place_at(at)->thread, hook) ? at : NO_THREAD;
}

/* A call has place @at: no calls are lost in a row. */
static __attribute__((noinline)) u32 thread_found(u64 key, u32 at)
{
	u32 first = find_thread(key, false);

	if (first != NO_THREAD)
		place_at(first)->thread.nr_lost = 0;
	return at;
}

/* A place of the thread that no other hook has, for the hook at @hook. *@is_left: the last one was left by a jump. */
static __attribute__((noinline)) u32 thread_begin(u64 hook, bool *is_left)
{
	u64 key = thread_key();

	*is_left = false;
	for (u32 i = 0; i <= PIECE_MAX_NESTED; i++) {
		u32 at = find_thread(nested_key(key, i), true);
		struct piece_thread *t = at == NO_THREAD ? NULL : &place_at(at)->thread;

		if (t && !place_hold(t, hook)) {
			*is_left = place_inherit(t, hook);
			if (!*is_left)
				continue;
		}
		if (i)
			return thread_found(key, at);
		if (t)
			t->nr_lost = 0;
		return at;
	}
	return thread_renew(key, hook);
}

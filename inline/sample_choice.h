/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which part of a call is recorded where blocks are sampled. Part of inline/piece.c. */
#pragma once

#include "inline/places.h"
#include "inline/sample.h"

/* The entry of this thread where its stubs look for it. NULL: it is not there. */
static inline struct piece_key *sample_first(u64 key)
{
	struct piece_key *k = &region_private()->keys[first_slot(key)];

	return __atomic_load_n(&k->key, __ATOMIC_ACQUIRE) == key ? k : NULL;
}

/* Nothing is recorded now: have the stubs of this thread count on. */
static inline void sample_go_on(void)
{
	struct piece_key *k = sample_first(thread_key());

	if (!k || k->left <= INT64_MAX)
		return;
	if (is_on())
		sample_draw(k);
	else
		k->left = INT64_MAX;
}

/* The distance of the sample that this thread has come to last. */
static inline u32 sample_last_distance(void)
{
	const struct piece_key *k = region_shared()->sample_bytes ? sample_first(thread_key()) : NULL;

	return k ? place_at(k->nr)->thread.calls.distance : 0;
}

/* The part of an allocation by @p that counts: enum call_choice. */
static inline u32 sample_alloc(const struct piece_regs *regs, const struct piece_probe *p)
{
	struct piece_key *first = sample_first(thread_key());
	struct piece_key *k = first ? first : find_key(thread_key(), true);
	u64 old = p->call.old_arg ? regs_arg(regs, p->call.old_arg) : 0;
	bool is_due, has_old;

	/* Of a thread without a place each call is lost. */
	if (!k)
		return CALL_COUNTS;
	is_due = sample_is_due(k, regs, p, regs_index(regs), STUBS_COUNT && first);
	if (is_due)
		place_at(k->nr)->thread.drawn = k->left;
	has_old = old && sample_take(old);
	if (!is_due)
		return has_old ? CALL_OLD : CALL_NONE;
	return has_old || !old ? CALL_COUNTS : CALL_NEW;
}

/* A release counts if the block is sampled. The block is temporary only if its thread has allocated nothing since. */
static inline u32 sample_free(const struct piece_regs *regs, const struct piece_probe *p)
{
	struct piece_key *k = sample_first(thread_key());
	struct piece_thread *t = k ? &place_at(k->nr)->thread : NULL;

	if (!p->call.old_arg || !sample_take(regs_arg(regs, p->call.old_arg)))
		return CALL_NONE;
	if (t && t->drawn != k->left)
		t->calls.last_alloc = 0;
	return CALL_COUNTS;
}

/* The part of the call that counts: enum call_choice. Heaps that are destroyed are rare. */
static inline u32 sample_choose(const struct piece_regs *regs)
{
	const struct piece_probe *p = regs_probe(regs);
	u32 kind = regs_kind(regs);
	const struct piece_key *k = sample_first(thread_key());

	if (kind == PIECE_RET)
		return k && !place_at(k->nr)->thread.calls.nr ? CALL_NONE : CALL_COUNTS;
	if (kind == PIECE_ALLOC && p->call.kind <= ALLOC_OUT)
		return sample_alloc(regs, p);
	if (kind == PIECE_FREE && p->call.kind == ALLOC_FREE)
		return sample_free(regs, p);
	if (p->call.kind == ALLOC_RESIZE && !sample_take(regs_arg(regs, p->call.old_arg)))
		return CALL_NONE;
	return CALL_COUNTS;
}

/* A call ends: note the sampled block that it leaves, before the program has that. False: there is no room for it. */
static __attribute__((noinline)) bool note_sampled(const struct heap_event *ev)
{
	bool has_failed = !ev->addr && ev->size;

	if (ev->h.kind == EVENT_REALLOC_END && has_failed && ev->old_addr)
		return sample_add(ev->old_addr);
	if (!ev->addr || ev->h.flags & EVENT_UNSAMPLED)
		return true;
	return sample_add(ev->addr);
}

/* ---- the adaptor of call/life.h: all was decided before ---- */

struct call;

static inline u8 call_choose(const struct call *c, struct inflight *t, const struct call_probe *p)
{
	(void)c;
	(void)p;
	return (u8)t->choice;
}

static inline bool call_is_followed(const struct call_probe *p)
{
	(void)p;
	return true;
}

static inline bool call_chooses_free(const struct call *c, struct inflight *t, const struct call_probe *p,
				     u64 addr)
{
	(void)c;
	(void)t;
	(void)p;
	(void)addr;
	return true;
}

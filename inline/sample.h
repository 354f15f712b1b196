/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which calls of a thread are recorded where blocks are sampled: nearly one in so many bytes. Each byte that a thread
 * asks for, and one more for each block, may be a sample, by chance; a block with at least one is recorded. So a block
 * of s bytes is recorded with the probability 1 - exp(-(s + 1) / mean distance).
 *
 * Stubs of x86_64 count the bytes themselves, and come here when a sample is due. A counter for each hash of an address
 * says whether a block there may be sampled; if so, a table of the sampled blocks decides.
 */
#pragma once

#include "inline/sample_draw.h"
#include "inline/shape.h"

enum {
	SAMPLE_NEAR = 512,  /* bytes of stack from a call of the program to one inside it */
	SAMPLE_BUCKETS = 4, /* that a block may be in */
};

/* A size that no call gets. */
static const u64 SAMPLE_TOO_LARGE = 1ULL << 47;

/*
 * Neighbours share a counter, and 16 KiB a cache line, which a thread that releases some blocks loads once: few blocks
 * are sampled, so few have a neighbour that is. Megabytes are mixed.
 */
static inline u8 *sample_counter(u64 addr)
{
	return &region_private()
			->counters[(addr ^ addr >> 16) >> PIECE_GRAIN_BITS & (PIECE_FILTER_BYTES - 1)];
}

/* May the block at @addr be sampled? */
static inline bool sample_may_have(u64 addr)
{
	return __atomic_load_n(sample_counter(addr), __ATOMIC_RELAXED);
}

/* Count a block at @addr, or by @step -1 one less. */
static inline void sample_count(u64 addr, int step)
{
	u8 *counter = sample_counter(addr), seen = __atomic_load_n(counter, __ATOMIC_RELAXED);

	while (seen < UINT8_MAX && !__atomic_compare_exchange_n(counter, &seen, (u8)(seen + step), false,
								__ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

/* Write @new in place of @old, where a block at @addr may be in @nr buckets. False: @old is not there. */
static bool sample_exchange_in(struct piece_bucket *buckets, u64 nr, u64 addr, u64 old, u64 new)
{
	u64 first = addr * 0x9e3779b97f4a7c15 >> 40;

	for (u64 i = 0; i < SAMPLE_BUCKETS * PIECE_BUCKET_BLOCKS; i++) {
		u64 bucket = (first + i / PIECE_BUCKET_BLOCKS) & (nr - 1), seen = old;
		u64 *slot = &buckets[bucket % PIECE_MAX_BUCKETS].blocks[i % PIECE_BUCKET_BLOCKS];

		if (__atomic_load_n(slot, __ATOMIC_RELAXED) == old &&
		    __atomic_compare_exchange_n(slot, &seen, new, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			return true;
	}
	return false;
}

/* As sample_exchange_in(), wherever the block may be. Few blocks are in the first buckets alone. */
static inline bool sample_exchange(u64 addr, u64 old, u64 new)
{
	if (sample_exchange_in(region_samples()->first, PIECE_FIRST_BUCKETS, addr, old, new))
		return true;
	if (!old)
		__atomic_store_n(&region_samples()->has_more, 1, __ATOMIC_RELAXED);
	return __atomic_load_n(&region_samples()->has_more, __ATOMIC_RELAXED) &&
	       sample_exchange_in(region_samples()->buckets, region_shared()->nr_buckets, addr, old, new);
}

/* The block at @addr is sampled. One that was there has been released where nobody saw it. False: no room. */
static inline bool sample_add(u64 addr)
{
	if (sample_may_have(addr) && sample_exchange(addr, ~addr, ~addr))
		return true;
	if (!sample_exchange(addr, 0, ~addr))
		return false;
	sample_count(addr, 1);
	return true;
}

/* The block at @addr is released. True: it was sampled. */
static inline bool sample_take(u64 addr)
{
	if (!sample_may_have(addr) || !sample_exchange(addr, ~addr, 0))
		return false;
	sample_count(addr, -1);
	return true;
}

/* Bytes that the call asks for. */
static inline u64 sample_size(const struct piece_regs *regs, const struct call_probe *p)
{
	u64 size = p->size_arg ? regs_arg(regs, p->size_arg) : 0, count;

	if (!p->count_arg)
		return size;
	count = regs_arg(regs, p->count_arg);
	return (size | count) >> 32 && size && count > SAMPLE_TOO_LARGE / size ? SAMPLE_TOO_LARGE
									       : size * count;
}

/*
 * Has the latest call of @k that was not sampled made this one, of @p? Its bytes are those of that call, so a sample
 * that is due is none. The return address of that call is still on the stack.
 */
static inline bool sample_is_inner(const struct piece_key *k, const struct piece_regs *regs,
				   const struct piece_probe *p, u32 index)
{
	u64 sp = regs_entry_sp(regs), begin = p->ip - p->call.own_before;

	if (HAS_LINK || k->outer_sp - sp >= SAMPLE_NEAR)
		return false;
	/* The outer call has jumped. */
	if (k->outer_sp == sp)
		return regs->ret == k->outer_ret && k->outer_probe != index;
	return regs->ret - begin < (u64)p->call.own_before + p->call.own_after &&
	       *(const volatile u64 *)(uintptr_t)k->outer_sp == k->outer_ret;
}

/* Count the bytes of a call of the thread with @k. True: a sample is due. @is_counted: its stub has counted them. */
static inline bool sample_is_due(struct piece_key *k, const struct piece_regs *regs,
				 const struct piece_probe *p, u32 index, bool is_counted)
{
	u64 size = sample_size(regs, &p->call);
	bool is_due = size >= SAMPLE_TOO_LARGE;

	if (!is_due && !is_counted)
		k->left -= size + 1;
	is_due |= k->left > INT64_MAX;
	if (is_due) {
		place_at(k->nr)->thread.calls.distance = sample_mean_log(place_at(k->nr)->thread.mean);
		sample_draw(k);
	}
	if (is_due && sample_is_inner(k, regs, p, index))
		return false;
	/* As the stubs do: the outermost of functions that jump to each other stays. */
	if (!is_due && sample_has_inner(&p->call) &&
	    (k->outer_sp != regs_entry_sp(regs) || k->outer_ret != regs->ret)) {
		k->outer_probe = index;
		k->outer_sp = regs_entry_sp(regs);
		k->outer_ret = regs->ret;
	}
	return is_due;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Draws distances for a thread of a target, whose mean heaptap may change. Part of inline/sample.h. */
#pragma once

#include "call/distance.h"
#include "inline/region.h"

/* The next distance of the thread with @k. heaptap may change the mean at any time. */
static inline void sample_draw(struct piece_key *k)
{
	u64 mean = __atomic_load_n(&region_shared()->sample_bytes, __ATOMIC_RELAXED);

	place_at(k->nr)->thread.mean = mean;
	k->left = sample_distance(sample_random(&k->random), mean);
}

/* A thread has its place: its first distance. */
static inline void sample_begin(struct piece_key *k, u64 key)
{
	k->random = region_shared()->sample_seed ^ key * 0x9e3779b97f4a7c15;
	sample_draw(k);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Numbers of a heap for people: with ~ before them where blocks are sampled, because then they are estimates. */
#pragma once

#include "user/heap/heap_sample.h"
#include "user/lib/human.h"

struct report;

/* estimate.c: the mean distance of samples, 0 = the numbers are exact. And: @text with ~ before it. */
u64 report_sample_bytes(const struct report *r);
struct human estimate_mark(const struct human *text);

static inline struct human estimate_of(const struct heap *h, struct human text)
{
	return HAS_SAMPLES && heap_sample_bytes(h) ? estimate_mark(&text) : text;
}

/* As human_bytes(), human_count(), human_lost(). */
static inline struct human estimate_bytes(const struct heap *h, u64 bytes)
{
	return estimate_of(h, human_bytes(bytes));
}

/* As human_bytes_exact(); no estimate is exact. */
static inline struct human estimate_bytes_exact(const struct heap *h, u64 bytes)
{
	return HAS_SAMPLES && heap_sample_bytes(h) ? estimate_bytes(h, bytes) : human_bytes_exact(bytes);
}

static inline struct human estimate_count(const struct heap *h, u64 n)
{
	return estimate_of(h, human_count(n));
}

static inline struct human_lost estimate_lost(const struct heap *h, u64 bytes, u64 blocks, u64 more_bytes,
					      u64 more_blocks)
{
	return human_lost(HAS_SAMPLES && heap_sample_bytes(h) ? "~" : "", bytes, blocks, more_bytes,
			  more_blocks);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A heap whose events are those of sampled blocks only. A block of s bytes is sampled with the probability
 * 1 - exp(-(s + 1) / distance), so it stands for 1 divided by that of such blocks: its worth. All sums of the heap are
 * those of worths, and so estimates without a bias.
 */
#pragma once

#include "user/heap/heap.h"
#include "user/heap/trend.h"

enum { HAS_SAMPLES = !IS_AGENT };

static const u64 SAMPLE_MOST_BYTES = 64ULL << 30; /* distance that makes sense */

/* Blocks, and bytes, that one block stands for. */
struct heap_worth {
	u64 nr, bytes;
};

/* Before the first event: the mean distance of samples is @bytes. 0, or 1 (each block is sampled): exact sums. */
void heap_set_sample(struct heap *h, u64 bytes);

/* The distance of the latest sample that tells its own, else that of heap_set_sample(); 0 = the sums are exact. */
u64 heap_sample_bytes(const struct heap *h);

/* Blocks that were entered, and those of them that are live. */
struct heap_samples {
	u64 seen, live;
};
struct heap_samples heap_samples(const struct heap *h);

/* An interval that holds the true number in 95 of 100 runs, and more often where few blocks were sampled. */
struct heap_interval {
	u64 low, high;
};

/*
 * Around the estimate @sum, whose variance is estimated as @variance; an unseen block stands for at most @most. By a
 * gamma distribution, as of Poisson counts with weights (Fay and Feuer).
 */
struct heap_interval heap_interval_of(double sum, double variance, double most);

/*
 * Around @bytes, a part of what the caller @row allocated: live, freed, at the peak, lost. And around the sum of @part
 * of all callers. Numbers of blocks have no interval: a few small blocks that were not seen can be thousands.
 */
struct heap_interval heap_bytes_interval(const struct heap *h, const struct heap_row *row, u64 bytes);
struct heap_interval heap_all_interval(const struct heap *h, u64 (*part)(const struct heap_row *row));

/*
 * Marks beside the logarithm in heap_event.h.distance, of streams: chance has decided about the event, so that its
 * readers see the same numbers as the heap that it was entered in. SAMPLE_MORE: it counts for one block more.
 */
enum sample_mark { SAMPLE_DRAWN = 64, SAMPLE_MORE = 128, SAMPLE_MARKS_END = 256 };

/* The distance of @ev, or of a live block, with its marks; 0 = it is not sampled. */
u32 heap_sample_drawn(const struct heap *h, const struct heap_event *ev);
u32 heap_block_drawn(const struct heap *h, const struct heap_block *block);

/* May the growth @g, of the present moment, be one of the estimate only? */
bool heap_sample_is_noise(const struct heap *h, const struct trend_growth *g);

/* As trend_growth(), for a growth that is more than noise. */
static inline bool heap_growth(const struct heap *h, const struct trend *t, struct trend_growth *g)
{
	return trend_growth(t, g) && !(HAS_SAMPLES && heap_sample_bytes(h) && heap_sample_is_noise(h, g));
}

/* The worth of a live block of @h. Pieces of mappings, and blocks of pools, are never sampled, but seen. */
struct heap_worth heap_block_worth(const struct heap *h, const struct heap_block *block);

/* As heap_block_worth(); in an exact heap the block is worth @size. */
static inline struct heap_worth heap_worth_or(const struct heap *h, const struct heap_block *block, u64 size)
{
	if (HAS_SAMPLES && heap_sample_bytes(h))
		return heap_block_worth(h, block);
	return (struct heap_worth){ 1, size };
}

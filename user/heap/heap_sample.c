/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sampled blocks of a heap, and the blocks that they stand for. */
#include "user/heap/heap_sample.h"

#include <math.h>

#include "user/heap/heap_worth.h"
#include "user/lib/hash_index.h"

static const double Z_95 = 1.96; /* standard deviations of a normal distribution that hold 95 of 100 */

void heap_set_sample(struct heap *h, u64 bytes)
{
	h->sample_bytes = bytes > 1 ? bytes : 0;
	h->timeline.has_few = h->sample_bytes;
}

u64 heap_sample_bytes(const struct heap *h)
{
	return h->sample_bytes && h->sample_last ? h->sample_last : h->sample_bytes;
}

struct heap_samples heap_samples(const struct heap *h)
{
	return (struct heap_samples){ h->nr_samples, h->blocks.nr };
}

/*
 * How many blocks of @size bytes one stands for that was sampled at @distance, as in an event: its probability is
 * 1 - exp(-(@size + 1) / distance).
 */
static double sample_weight(const struct heap *h, u64 size, u32 distance)
{
	double bytes = distance ? (double)(1ULL << distance) : (double)h->sample_bytes;

	if (distance == SAMPLED_ALWAYS)
		return 1;
	return -1 / expm1(-((double)size + 1) / bytes);
}

/* By chance, the same again for the same event: in @part of all events. */
static bool sample_is_drawn(const struct heap_event *ev, u64 salt, double part)
{
	double whole = 4294967296.0;

	return (double)(hash_u64(hash_u64(ev->addr ^ ev->time_ns ^ salt) >> 7) >> 32) < part * whole;
}

/*
 * The distance of a block that its program has sampled, and whose weight it tells: that of the power of two below it,
 * or of the one above, by chance, so that the mean is the weight.
 */
static u32 sample_distance_of_weight(const struct heap *h, const struct heap_event *ev)
{
	enum { SALT = 1, MOST = 47 }; /* a distance of 128 TiB */
	double nr = (double)ev->weight / (double)(ev->size ? ev->size : 1), low = 1, high;
	u32 log = 0;

	for (; log < MOST; log++, low = high) {
		high = sample_weight(h, ev->size, log + 1);
		if (nr < high)
			break;
	}
	if (log < MOST && nr > low && sample_is_drawn(ev, SALT, (nr - low) / (high - low)))
		log++;
	return log ? log : SAMPLED_ALWAYS;
}

/* The distance of @ev, which the target may have written. */
static u32 sample_distance_of(const struct heap *h, const struct heap_event *ev)
{
	if (ev->h.distance & SAMPLE_DRAWN)
		return ev->h.distance & (SAMPLE_DRAWN - 1);
	if (alloc_fn(h->fns, ev->h.fn)->family == FAMILY_SAMPLER)
		return sample_distance_of_weight(h, ev);
	return ev->h.distance < 1U << (47 - SAMPLED_SIZE_BITS) ? ev->h.distance : 0;
}

static bool is_sampled_fn(const struct heap *h, u16 fn)
{
	const struct alloc_fn *row = alloc_fn(h->fns, fn);

	return row->family != FAMILY_MMAP && row->family != FAMILY_POOL;
}

struct heap_worth heap_worth(const struct heap *h, u16 fn, u64 size, u32 distance, bool is_more)
{
	double weight;

	if (!h->sample_bytes || !is_sampled_fn(h, fn))
		return (struct heap_worth){ 1, size };
	weight = sample_weight(h, size, distance);
	return (struct heap_worth){ (u64)weight + is_more, (u64)llround(weight * (double)size) };
}

/* Blocks count as whole numbers: by chance one more, so that their mean is right. The same again for the same event. */
static bool sample_is_more(const struct heap *h, const struct heap_event *ev)
{
	double weight;

	if (ev->h.distance & SAMPLE_DRAWN)
		return ev->h.distance & SAMPLE_MORE;
	weight = sample_weight(h, ev->size, sample_distance_of(h, ev));
	return sample_is_drawn(ev, 0, weight - floor(weight));
}

void heap_sample_enter(struct heap *h, struct block *b, const struct heap_event *ev)
{
	u64 size = ev->size < SAMPLED_MAX_SIZE ? ev->size : SAMPLED_MAX_SIZE,
	    distance = sample_distance_of(h, ev);

	b->is_more = sample_is_more(h, ev);
	b->size = size | distance << SAMPLED_SIZE_BITS;
	h->nr_samples++;
	if (distance && distance != SAMPLED_ALWAYS)
		h->sample_last = 1ULL << distance;
}

u32 heap_sample_drawn(const struct heap *h, const struct heap_event *ev)
{
	bool is_new = ev->h.kind == EVENT_ALLOC ||
		      (ev->h.kind == EVENT_REALLOC_END && !(ev->h.flags & EVENT_UNSAMPLED));

	if (!h->sample_bytes || !is_new || !is_sampled_fn(h, ev->h.fn))
		return 0;
	return sample_distance_of(h, ev) | SAMPLE_DRAWN | (sample_is_more(h, ev) ? SAMPLE_MORE : 0);
}

u32 heap_block_drawn(const struct heap *h, const struct heap_block *block)
{
	if (!h->sample_bytes || !is_sampled_fn(h, heap_row_get(h, block->row).fn))
		return 0;
	return block->distance | SAMPLE_DRAWN | (block->is_more ? SAMPLE_MORE : 0);
}

u32 heap_sample_distance(const struct block *b)
{
	return (u32)(b->size >> SAMPLED_SIZE_BITS);
}

struct heap_worth heap_block_worth(const struct heap *h, const struct heap_block *block)
{
	u16 fn = heap_row_get(h, block->row).fn;

	return heap_worth(h, fn, block->size, block->distance, block->is_more);
}

u64 heap_sampled_calls(const struct heap *h, const struct heap_event *ev)
{
	const struct block *b = ev->h.kind == EVENT_FREE ? block_table_find(&h->blocks, ev->addr) : NULL;
	u64 size = ev->size < SAMPLED_MAX_SIZE ? ev->size : SAMPLED_MAX_SIZE;

	if (b)
		return block_worth(h, b).nr;
	if (ev->h.kind == EVENT_FREE)
		return 1;
	return ev->h.flags & EVENT_UNSAMPLED && ev->h.kind == EVENT_REALLOC_END
		       ? 0
		       : heap_worth(h, ev->h.fn, size, sample_distance_of(h, ev), sample_is_more(h, ev)).nr;
}

void heap_sample_spread(const struct heap *h, struct row *row, const struct block *b)
{
	double size = (double)block_size(h, b),
	       weight = sample_weight(h, block_size(h, b), heap_sample_distance(b));

	if (is_sampled_fn(h, row->fn))
		row->spread += weight * (weight - 1) * size * size;
}

/* ---- intervals ---- */

/* About the quantile of a gamma distribution that lies @z standard deviations from the middle (Wilson and Hilferty). */
static double gamma_quantile(double mean, double variance, double z)
{
	double ninth = variance / (9 * mean * mean), root = 1 - ninth + z * sqrt(ninth);

	return root > 0 ? mean * root * root * root : 0;
}

struct heap_interval heap_interval_of(double sum, double variance, double most)
{
	double low = sum > 0 ? gamma_quantile(sum, variance, -Z_95) : 0;
	double high = gamma_quantile(sum + most, variance + most * most, Z_95);
	return (struct heap_interval){ (u64)llround(low), (u64)llround(high) };
}

static double variance_of(const struct heap_row *row, u64 bytes)
{
	return row->alloc_bytes ? row->spread * (double)bytes / (double)row->alloc_bytes : 0;
}

struct heap_interval heap_bytes_interval(const struct heap *h, const struct heap_row *row, u64 bytes)
{
	if (row->spread <= 0)
		return (struct heap_interval){ bytes, bytes };
	return heap_interval_of((double)bytes, variance_of(row, bytes), (double)heap_sample_bytes(h));
}

struct heap_interval heap_all_interval(const struct heap *h, u64 (*part)(const struct heap_row *row))
{
	double sum = 0, variance = 0;

	for (u32 i = 0; i < heap_row_count(h); i++) {
		const struct heap_row row = heap_row_get(h, i);
		u64 bytes = part(&row);

		sum += (double)bytes;
		variance += variance_of(&row, bytes);
	}
	return heap_interval_of(sum, variance, (double)heap_sample_bytes(h));
}

/* Live blocks that are younger than a moment. */
struct younger {
	const struct heap *heap;
	u64 since_ns;
	double bytes;
};

static int add_younger(void *ctx, const struct heap_block *block)
{
	struct younger *y = ctx;

	if (block->time_ns >= y->since_ns)
		y->bytes += (double)heap_block_worth(y->heap, block).bytes;
	return 0;
}

/* Blocks that were live before and are live now are the same samples: only the others make noise. */
bool heap_sample_is_noise(const struct heap *h, const struct trend_growth *g)
{
	struct younger y = { h, h->totals.last_time_ns - g->span_ns, 0 };
	double spread = 0, both, gone;

	for (u32 i = 0; i < heap_row_count(h); i++)
		spread += heap_row_get(h, i).spread;
	if (g->after <= g->before || !h->totals.alloc_bytes)
		return false;
	heap_for_each_block(h, add_younger, &y);
	both = fmax(0, (double)h->totals.live_bytes - y.bytes);
	gone = fmax(0, (double)g->before - both);
	return (double)(g->after - g->before) <
	       Z_95 * sqrt(spread / (double)h->totals.alloc_bytes * (y.bytes + gone));
}

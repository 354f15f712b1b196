/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Numbers of a heap for people: with ~ before them where blocks are sampled, because then they are estimates. */
#pragma once

#include "user/heap/heap_sample.h"
#include "user/lib/human.h"
#include "user/lib/json.h"

struct report;

/* Numbers with an interval that holds the truth in 95 of 100 runs. */
enum estimate_part {
	ESTIMATE_ALLOC_BYTES,
	ESTIMATE_FREED_BYTES,
	ESTIMATE_LIVE_BYTES,
	ESTIMATE_PEAK_BYTES,
	ESTIMATE_PARTS
};

struct estimate_text {
	char text[2 * sizeof(struct human) + 16];
};

/* estimate.c: the mean distance of samples, 0 = the numbers are exact. And: @text with ~ before it. */
u64 report_sample_bytes(const struct report *r);
struct human estimate_mark(const struct human *text);

/* estimate.c: for sampled heaps only. " (7.6 to 8.7 MiB)" of bytes; and the keys "low" and "high". */
struct estimate_text estimate_interval(struct heap_interval i);
struct heap_interval estimate_all(const struct heap *h, enum estimate_part part);
struct heap_interval estimate_row(const struct heap *h, const struct heap_row *row, enum estimate_part part);
void estimate_json_all(struct json *j, const struct heap *h);
void estimate_json_row(struct json *j, const struct heap *h, const struct heap_row *row);

/* @text, with ~ before it if it is an estimate. */
static inline struct human estimate_if(bool is_estimate, struct human text)
{
	if (HAS_SAMPLES && is_estimate)
		text = estimate_mark(&text);
	return text;
}

static inline struct human estimate_of(const struct heap *h, struct human text)
{
	return estimate_if(HAS_SAMPLES && heap_sample_bytes(h), text);
}

/* As human_bytes(), human_count(), human_lost(). */
static inline struct human estimate_bytes(const struct heap *h, u64 bytes)
{
	return HAS_SAMPLES ? estimate_of(h, human_bytes(bytes)) : human_bytes(bytes);
}

/* As human_bytes_exact(); no estimate is exact. */
static inline struct human estimate_bytes_exact(const struct heap *h, u64 bytes)
{
	return HAS_SAMPLES && heap_sample_bytes(h) ? estimate_bytes(h, bytes) : human_bytes_exact(bytes);
}

static inline struct human estimate_count(const struct heap *h, u64 n)
{
	return HAS_SAMPLES ? estimate_of(h, human_count(n)) : human_count(n);
}

static inline struct human_lost estimate_lost(const struct heap *h, u64 bytes, u64 blocks, u64 more_bytes,
					      u64 more_blocks)
{
	return human_lost(HAS_SAMPLES && heap_sample_bytes(h) ? "~" : "", bytes, blocks, more_bytes,
			  more_blocks);
}

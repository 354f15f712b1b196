/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Marks estimated numbers in texts, and writes their intervals. */
#include "user/report/estimate.h"

#include <stdio.h>
#include <string.h>

#include "user/report/report.h"

struct human estimate_mark(const struct human *text)
{
	struct human marked;

	snprintf(marked.text, sizeof(marked.text), "~%.*s", (int)sizeof(marked.text) - 2, text->text);
	return marked;
}

u64 report_sample_bytes(const struct report *r)
{
	return r->nr_processes ? heap_sample_bytes(r->processes[0].heap) : 0;
}

struct estimate_text estimate_interval(struct heap_interval i)
{
	struct human low = human_bytes(i.low), high = human_bytes(i.high);
	const char *unit_low = strchr(low.text, ' '), *unit_high = strchr(high.text, ' ');
	struct estimate_text t;
	int len = (int)strlen(low.text);

	if (unit_low && unit_high && !strcmp(unit_low, unit_high))
		len = (int)(unit_low - low.text);
	snprintf(t.text, sizeof(t.text), " (%.*s to %s)", len, low.text, high.text);
	return t;
}

static u64 estimate_alloc_bytes(const struct heap_row *row)
{
	return row->alloc_bytes;
}

static u64 estimate_freed_bytes(const struct heap_row *row)
{
	return row->alloc_bytes - row->live_bytes;
}

static u64 estimate_live_bytes(const struct heap_row *row)
{
	return row->live_bytes;
}

static u64 estimate_peak_bytes(const struct heap_row *row)
{
	return row->peak_bytes;
}

/* The numbers that have an interval. */
static const struct {
	const char *key;
	u64 (*part)(const struct heap_row *row);
} parts[ESTIMATE_PARTS] = {
	[ESTIMATE_ALLOC_BYTES] = { "alloc_bytes", estimate_alloc_bytes },
	[ESTIMATE_FREED_BYTES] = { "freed_bytes", estimate_freed_bytes },
	[ESTIMATE_LIVE_BYTES] = { "live_bytes", estimate_live_bytes },
	[ESTIMATE_PEAK_BYTES] = { "peak_bytes", estimate_peak_bytes },
};

struct heap_interval estimate_all(const struct heap *h, enum estimate_part part)
{
	return heap_all_interval(h, parts[part].part);
}

struct heap_interval estimate_row(const struct heap *h, const struct heap_row *row, enum estimate_part part)
{
	return heap_bytes_interval(h, row, parts[part].part(row));
}

static void estimate_json(struct json *j, const struct heap_interval *of)
{
	for (int is_high = 0; is_high < 2; is_high++) {
		json_object_begin(j, is_high ? "high" : "low");
		for (int i = 0; i < ESTIMATE_PARTS; i++)
			if (of[i].high)
				json_u64(j, parts[i].key, is_high ? of[i].high : of[i].low);
		json_object_end(j);
	}
}

void estimate_json_all(struct json *j, const struct heap *h)
{
	struct heap_interval of[ESTIMATE_PARTS];

	for (int i = 0; i < ESTIMATE_PARTS; i++)
		of[i] = estimate_all(h, i);
	estimate_json(j, of);
}

void estimate_json_row(struct json *j, const struct heap *h, const struct heap_row *row)
{
	struct heap_interval of[ESTIMATE_PARTS];

	for (int i = 0; i < ESTIMATE_PARTS; i++)
		of[i] = estimate_row(h, row, i);
	estimate_json(j, of);
}

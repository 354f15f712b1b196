/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The numbers of callers that add up, and the one that a report is about. */
#include "user/report/measure.h"

#include <string.h>

static u64 measure_live_bytes(const struct report_row *r)
{
	return r->row.live_bytes;
}

static u64 measure_live_blocks(const struct report_row *r)
{
	return r->row.live_blocks;
}

static u64 measure_total_bytes(const struct report_row *r)
{
	return r->row.alloc_bytes;
}

static u64 measure_total_blocks(const struct report_row *r)
{
	return r->row.allocs;
}

/* Each lost block counts for its own caller. */
static u64 measure_leaked_bytes(const struct report_row *r)
{
	return r->leaks.sums.of[SCAN_DEFINITE].bytes + r->leaks.sums.of[SCAN_INDIRECT].bytes;
}

static u64 measure_leaked_blocks(const struct report_row *r)
{
	return r->leaks.sums.of[SCAN_DEFINITE].blocks + r->leaks.sums.of[SCAN_INDIRECT].blocks;
}

static u64 measure_peak(const struct report_row *r)
{
	return r->row.peak_bytes;
}

static u64 measure_temporary(const struct report_row *r)
{
	return r->row.temporary;
}

enum { LIVE_BYTES, TOTAL_BYTES = 2 };

const struct report_measure report_measures[] = {
	[LIVE_BYTES] = { "live-bytes", "live bytes", true, false, measure_live_bytes },
	{ "live-blocks", "live blocks", false, false, measure_live_blocks },
	[TOTAL_BYTES] = { "total-bytes", "bytes allocated", true, false, measure_total_bytes },
	{ "total-blocks", "blocks allocated", false, false, measure_total_blocks },
	{ "leaked-bytes", "bytes leaked", true, true, measure_leaked_bytes },
	{ "leaked-blocks", "blocks leaked", false, true, measure_leaked_blocks },
	{ "peak", "bytes at the peak", true, false, measure_peak },
	{ "temporary", "temporary blocks", false, false, measure_temporary },
	{ NULL },
};

const struct report_measure *report_measure_named(const char *name)
{
	for (const struct report_measure *m = report_measures; m->name; m++)
		if (!strcmp(m->name, name))
			return m;
	return NULL;
}

const struct report_measure *report_measure_for(const struct report *r)
{
	const struct report_key *key = r->options.sort ? r->options.sort : report_key_find("live-bytes");
	const struct report_measure *m = report_measure_named(key->name);
	bool is_live = false;
	bool is_judged = false;

	for (size_t i = 0; i < r->nr_processes; i++) {
		is_live |= heap_totals(r->processes[i].heap).live_blocks != 0;
		is_judged |= r->processes[i].leaks != NULL;
	}
	if (!m || (m->is_of_scan && !is_judged))
		m = &report_measures[LIVE_BYTES];
	return key->is_of_live && !is_live ? &report_measures[TOTAL_BYTES] : m;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The numbers of callers that add up, and the one that a report is about. */
#include "user/report/measure.h"

#include <string.h>

enum { LIVE_BYTES, TOTAL_BYTES = 2 };

const struct report_measure report_measures[] = {
	[LIVE_BYTES] = { "live-bytes", "live bytes", true, false, ROW_LIVE_BYTES },
	{ "live-blocks", "live blocks", false, false, ROW_LIVE_BLOCKS },
	[TOTAL_BYTES] = { "total-bytes", "bytes allocated", true, false, ROW_TOTAL_BYTES },
	{ "total-blocks", "blocks allocated", false, false, ROW_TOTAL_BLOCKS },
	{ "leaked-bytes", "bytes leaked", true, true, ROW_LEAKED_BYTES },
	{ "leaked-blocks", "blocks leaked", false, true, ROW_LEAKED_BLOCKS },
	{ "peak", "bytes at the peak", true, false, ROW_PEAK },
	{ "temporary", "temporary blocks", false, false, ROW_TEMPORARY },
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

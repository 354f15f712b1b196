/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The numbers of callers that add up, for formats that show one number of each caller: graphs of callers. */
#pragma once

#include "user/report/report.h"
#include "user/report/report_rows.h"

/* One number; its sum over all callers is the one of the JSON report. */
struct report_measure {
	const char *name; /* as a sort key: "live-bytes" */
	const char *what; /* "live bytes" */
	bool is_bytes;	  /* else blocks */
	bool is_of_scan;  /* zero without a leak verdict */
	enum row_number number;
};

/* The table; live-bytes is the first row, and the last row has no name. */
extern const struct report_measure report_measures[];

/* The number @name, or NULL. */
const struct report_measure *report_measure_named(const char *name);

/*
 * The number that the sort key of @r names; live-bytes for keys that do not add up. As in the order of rows, leaks
 * without any verdict become live-bytes, and what is live becomes total-bytes if nothing is live in any process.
 */
const struct report_measure *report_measure_for(const struct report *r);

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The tables of the compact JSON report: each file, function, frame and stack has a number and is written once. */
#pragma once

#include "user/lib/json.h"
#include "user/report/intern.h"
#include "user/report/report.h"
#include "user/report/report_rows.h"

/* The tables. Memory grows with the stacks that differ, and not with the callers of processes that share them. */
struct compact_tables {
	const struct report *report;   /* borrowed */
	struct intern_strings names;   /* of functions and source files, as they come */
	struct intern_strings sources; /* source files */
	struct intern_table functions; /* struct compact_function */
	struct intern_table places;    /* struct compact_place */
	struct intern_table stacks;    /* struct compact_stack */
	struct intern_table modules;   /* struct compact_module */
	struct compact_frame *frames;  /* owned */
	u32 nr_frames, max_frames;
};

void compact_tables_init(struct compact_tables *t, const struct report *r);
void compact_tables_fini(struct compact_tables *t);

/* The number of the stack @s of @p. Names its frames, which may block on disk I/O. 0 or -ENOMEM. */
int compact_stack(struct compact_tables *t, const struct report_process *p, const struct stack *s,
		  u32 *number) __must_check;

/* Write the tables: keys "modules", "sources", "functions", "frames" and "backtraces". 0 or -ENOMEM. */
int compact_tables_write(struct json *j, struct compact_tables *t) __must_check;

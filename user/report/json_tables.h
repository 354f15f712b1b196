/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The tables of the JSON report: each file, function, frame and stack has a number and is written once. */
#pragma once

#include "user/lib/json.h"
#include "user/report/intern.h"
#include "user/report/report.h"

/* The tables. Memory grows with the stacks that differ, and not with the callers of processes that share them. */
struct json_tables {
	const struct report *report;   /* borrowed */
	struct intern_strings names;   /* of functions and source files, as they come */
	struct intern_strings sources; /* source files */
	struct intern_table functions; /* struct table_function */
	struct intern_table places;    /* struct table_place */
	struct intern_table stacks;    /* struct table_stack */
	struct intern_table modules;   /* struct table_module */
	struct written_frame *frames;  /* owned */
	u32 nr_frames, max_frames;
};

void json_tables_init(struct json_tables *t, const struct report *r);
void json_tables_fini(struct json_tables *t);

/* The number of the stack @s of @p. Names its frames, which may block on disk I/O. 0 or -ENOMEM. */
int json_tables_stack(struct json_tables *t, const struct report_process *p, const struct stack *s,
		      u32 *number) __must_check;

/* Write the tables: keys "modules", "sources", "functions", "frames" and "backtraces". 0 or -ENOMEM. */
int json_tables_write(struct json *j, struct json_tables *t) __must_check;

/* How many frames have been written, and how many of them have no function. */
void json_tables_count(const struct json_tables *t, size_t *nr, size_t *nr_unnamed);
